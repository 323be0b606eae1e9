/**
 * References in a script's texts and inputs.
 *
 * | `${{ … }}` | is |
 * |---|---|
 * | `intent` | the last thing the user said; what rnix tells the model in between is none |
 * | `index`, `round` | how often this turn or group was repeated before, from 0; the same from 1 |
 * | `results.TURN.CALL.text` | text of a call's result |
 * | `results.TURN.CALL.structured.PATH` | a part of its structured content, else of its text read as JSON |
 * | `results.TURN.CALL.content.PATH` | a part of its content blocks |
 * | `results.TURN.CALL.error` | true if the call failed |
 *
 * TURN is `t1` for the first reply of the run, `t2` for the second …, repeats counted; `last` for the reply before this one; or a turn's `id`, then its latest reply. CALL counts from 0. PATH is keys and positions with dots between.
 * A string that is one reference and nothing else becomes the value itself, of any type; elsewhere values that are no text are put in as JSON. `$${{` stands for `${{`.
 */
import { isJsonObject, type Json } from "../../base/json.ts";

export type Reference =
  & { source: string }
  & (
    | { kind: "intent" | "index" | "round" }
    | {
      kind: "result";
      /** Number of the reply from 1, `last`, or a turn's id. */
      turn: number | string;
      call: number;
      field: "text" | "error" | "structured" | "content";
      path: string[];
    }
  );

export interface ReferenceProblem {
  message: string;
}

const PATTERN = /\$?\$\{\{([\s\S]*?)(\}\}|$)/g;
const RESULT =
  /^results\.(t[1-9]\d*|[a-z][a-z0-9_-]*)\.(\d+)\.(text|error|structured|content)((?:\.[^.]+)*)$/;

function parseReference(source: string, closed: boolean): Reference | ReferenceProblem {
  if (!closed) return { message: `\${{ ${source} isn't closed: add }}` };
  if (source === "intent" || source === "index" || source === "round") {
    return { source, kind: source };
  }
  const match = RESULT.exec(source);
  const [, turn, call, field, path] = match ?? [];
  if (turn === undefined || (path !== "" && (field === "text" || field === "error"))) {
    return {
      message: `Can't read reference \${{ ${source} }}: known are intent, index, round and ` +
        "results.TURN.CALL.text, .error, .structured.PATH, .content.PATH",
    };
  }
  return {
    source,
    kind: "result",
    turn: /^t\d+$/.test(turn) ? Number(turn.slice(1)) : turn,
    call: Number(call),
    field: field === "error" || field === "structured" || field === "content" ? field : "text",
    path: (path ?? "").split(".").slice(1),
  };
}

/** All references in the strings of a value, or why one can't be read. Keys are no templates. */
export function findReferences(value: Json): (Reference | ReferenceProblem)[] {
  if (typeof value === "string") {
    return [...value.matchAll(PATTERN)].filter((match) => !match[0].startsWith("$$"))
      .map((match) => parseReference((match[1] ?? "").trim(), match[2] !== ""));
  }
  if (Array.isArray(value)) return value.flatMap(findReferences);
  return isJsonObject(value) ? Object.values(value).flatMap(findReferences) : [];
}

/** The value with its references filled in by `resolve`, which may throw. */
export function fillReferences(value: Json, resolve: (reference: Reference) => Json): Json {
  if (typeof value === "string") return fillText(value, resolve);
  if (Array.isArray(value)) return value.map((item) => fillReferences(item, resolve));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, fillReferences(member, resolve)]),
  );
}

function fillText(text: string, resolve: (reference: Reference) => Json): Json {
  const value = (source: string): Json => {
    const reference = parseReference(source.trim(), true);
    return "message" in reference ? "" : resolve(reference);
  };
  const whole = /^\$\{\{((?:(?!\}\})[\s\S])*)\}\}$/.exec(text);
  if (whole !== null) return value(whole[1] ?? "");
  return text.replaceAll(PATTERN, (match: string, source: string) => {
    if (match.startsWith("$$")) return match.slice(1);
    const filled = value(source);
    return typeof filled === "string" ? filled : JSON.stringify(filled);
  });
}

/** The part of a value at a path; undefined where there is none. */
export function partAt(value: Json | undefined, path: readonly string[]): Json | undefined {
  let part = value;
  for (const key of path) {
    if (Array.isArray(part)) part = part[Number(key)];
    else if (isJsonObject(part) && Object.hasOwn(part, key)) part = part[key];
    else return undefined;
  }
  return part;
}
