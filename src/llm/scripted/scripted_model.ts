/**
 * A model that plays a script: demos and tests without a provider.
 *
 * It keeps no state: the reply depends on the request alone (the number of assistant messages, those that a summary stands for included, says which turn is due), so a resumed run goes on exactly where it was. Usage is computed from the texts, four characters to a token.
 */
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { nearest } from "../../base/nearest.ts";
import { isNote } from "../../base/note.ts";
import { readArguments } from "../tool_arguments.ts";
import type {
  AssistantPart,
  Message,
  Model,
  ModelDelta,
  ModelOutcome,
  ModelReply,
  ModelRequest,
  ModelTool,
  ToolResult,
} from "../model.ts";
import { fillReferences, partAt, type Reference } from "./reference.ts";
import type { Script, ScriptedCall, ScriptedTurn, Streaming } from "./script.ts";

const CHARS_PER_TOKEN = 4;
const SUMMARY_DEFAULT = "(the script has no words for what was before)";

/** A turn in its place: which repetition it is. */
interface Due {
  turn: ScriptedTurn;
  /** Repetitions before this one. */
  index: number;
}

type RequestOptions = Parameters<Model["request"]>[1];

export class ScriptedModel implements Model {
  readonly provider = "scripted";
  readonly #script: Script;
  readonly #clock: Clock;
  readonly #chars = new WeakMap<object, number>();

  constructor(script: Script, clock: Clock) {
    this.#script = script;
    this.#clock = clock;
  }

  /** A script takes any tool. */
  refuses(): undefined {}

  async request(request: ModelRequest, options: RequestOptions): Promise<ModelOutcome> {
    try {
      options.signal.throwIfAborted();
      // A copy: the owner may append while this request is on its way.
      const messages = [...request.messages];
      return { ok: true, reply: await this.#reply({ ...request, messages }, options) };
    } catch (thrown) {
      const error = options.signal.aborted ? abortError(options.signal) : toSysError(thrown);
      return { ok: false, error, retryable: false };
    }
  }

  close(): void {}

  async #reply(request: ModelRequest, options: RequestOptions): Promise<ModelReply> {
    if (request.purpose === "summary") return this.#summary(request, options);
    const number = repliesIn(request.messages) + 1;
    const due = this.#due(number);
    const context = new Context(this.#script, request.messages, number, due);
    const text = asText(context.fill(due.turn.text));
    const calls = due.turn.calls.map((call, index): AssistantPart => ({
      type: "tool-call",
      provider_id: `call_${number}_${index}`,
      tool: call.offered ? this.#tool(call, request.tools, number) : call.tool,
      ...readInput(call, context),
    }));
    if (due.turn.delayMs > 0) await sleep(this.#clock, due.turn.delayMs, options.signal);
    const stream = due.turn.stream ?? this.#script.stream;
    await this.#stream(text, stream, options);
    const parts: AssistantPart[] = text === "" ? calls : [{ type: "text", text }, ...calls];
    return {
      message: { role: "assistant", parts },
      usage: {
        input_tokens: this.#tokens([request.system, request.tools, ...request.messages]),
        output_tokens: this.#tokens(parts),
      },
      finishReason: calls.length > 0 ? "tool-calls" : "stop",
    };
  }

  /** A script has no words for what it was asked in between. */
  #summary(request: ModelRequest, { onDelta }: RequestOptions): ModelReply {
    const text = this.#script.summary ?? SUMMARY_DEFAULT;
    onDelta({ type: "text", text });
    return {
      message: { role: "assistant", parts: [{ type: "text", text }] },
      usage: {
        input_tokens: this.#tokens([request.system, ...request.messages]),
        output_tokens: this.#tokens([text]),
      },
      finishReason: "stop",
    };
  }

  #due(number: number): Due {
    let before = 0;
    for (const { turns, repeat } of this.#script.spans) {
      const offset = number - 1 - before;
      const turn = offset < turns.length * repeat ? turns[offset % turns.length] : undefined;
      if (turn !== undefined) return { turn, index: Math.floor(offset / turns.length) };
      before += turns.length * repeat;
    }
    const { final, name } = this.#script;
    if (final !== undefined) return { turn: { text: final, delayMs: 0, calls: [] }, index: 0 };
    throw new SysError(
      "INVALID",
      `Script "${name}" has ended: it has ${before} ${
        before === 1 ? "reply" : "replies"
      }, this is request ${number}`,
      { hint: 'End the script with a turn that has text and no calls, or add "final: TEXT"' },
    );
  }

  #tool({ tool: wanted, at }: ScriptedCall, tools: readonly ModelTool[], number: number): string {
    if (tools.some((tool) => tool.name === wanted)) return wanted;
    const names = tools.map((tool) => tool.name);
    const found = names.filter((name) => name.endsWith(`__${wanted}`));
    const [only] = found;
    if (only !== undefined && found.length === 1) return only;
    const where = whereIn(this.#script, at, number);
    if (found.length > 1) {
      throw new SysError(
        "INVALID",
        `${where}Tool "${wanted}" is ambiguous: ${found.join(", ")}`,
        {
          hint: "Write the whole name",
        },
      );
    }
    const near = nearest(wanted, [
      ...names,
      ...names.map((name) => name.split("__").at(-1) ?? name),
    ]);
    throw new SysError("INVALID", `${where}There is no tool "${wanted}"`, {
      hint: near === undefined
        ? `Offered are: ${names.length === 0 ? "no tools" : names.join(", ")}`
        : `Did you mean "${near}"?`,
    });
  }

  /** Tells the text piece by piece, each after its pause. */
  async #stream(
    text: string,
    stream: Streaming | undefined,
    { signal, onDelta }: { signal: AbortSignal; onDelta: (delta: ModelDelta) => void },
  ): Promise<void> {
    const points = stream === undefined ? [] : [...text];
    if (stream === undefined && text !== "") onDelta({ type: "text", text });
    for (let at = 0; stream !== undefined && at < points.length; at += stream.size) {
      if (stream.everyMs > 0) await sleep(this.#clock, stream.everyMs, signal);
      onDelta({ type: "text", text: points.slice(at, at + stream.size).join("") });
    }
  }

  /** Messages and tools are never changed once made, so each is counted once. */
  #tokens(parts: readonly unknown[]): number {
    let chars = 0;
    for (const part of parts) {
      if (typeof part !== "object" || part === null) {
        chars += String(part).length;
        continue;
      }
      const known = this.#chars.get(part) ?? JSON.stringify(part).length;
      this.#chars.set(part, known);
      chars += known;
    }
    return Math.ceil(chars / CHARS_PER_TOKEN);
  }
}

/** `script.yaml:3:5: Reply 2: `; what follows begins a sentence. */
function whereIn({ name }: Script, at: string | undefined, number: number): string {
  return `${name}${at === undefined ? "" : `:${at}`}: Reply ${number}: `;
}

/** The error an aborted request ends with: the signal's own, else TIMEOUT. */
function abortError(signal: AbortSignal): SysError {
  return signal.reason instanceof SysError
    ? signal.reason
    : new SysError("TIMEOUT", "The model request was cancelled", { cause: signal.reason });
}

function repliesIn(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => {
    if (message.role === "assistant") return sum + 1;
    return message.role === "user" ? sum + (message.repliesBefore ?? 0) : sum;
  }, 0);
}

function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function readInput(call: ScriptedCall, context: Context): { input: Json; malformed?: string } {
  return call.argumentText === undefined
    ? { input: context.fill(call.input) }
    : readArguments(call.argumentText);
}

/** What references can refer to while one reply is made. */
class Context {
  readonly #script: Script;
  readonly #messages: readonly Message[];
  readonly #number: number;
  readonly #due: Due;

  constructor(script: Script, messages: readonly Message[], number: number, due: Due) {
    this.#script = script;
    this.#messages = messages;
    this.#number = number;
    this.#due = due;
  }

  fill(value: Json): Json {
    return fillReferences(value, (reference) => this.#resolve(reference));
  }

  #resolve(reference: Reference): Json {
    if (reference.kind !== "result") return this.#fact(reference.kind);
    const result = this.#results(this.#turnNumber(reference.turn))?.[reference.call];
    const value = result === undefined
      ? undefined
      : readField(result, reference.field, reference.path);
    if (value !== undefined) return value;
    throw new SysError(
      "INVALID",
      `${
        whereIn(this.#script, this.#due.turn.at, this.#number)
      }\${{ ${reference.source} }} refers to ` +
        (result === undefined
          ? "a result that isn't there"
          : "a part that the result doesn't have"),
      { hint: "Replies count from t1, the calls of one reply from 0" },
    );
  }

  #fact(kind: "intent" | "index" | "round"): Json {
    if (kind !== "intent") return this.#due.index + (kind === "round" ? 1 : 0);
    const last = this.#messages.findLast((message) =>
      message.role === "user" && !isNote(message.text)
    );
    return last?.role === "user" ? last.text : "";
  }

  #turnNumber(turn: number | string): number {
    if (typeof turn === "number") return turn;
    if (turn === "last") return this.#number - 1;
    let before = 0;
    let latest = 0;
    for (const { turns, repeat } of this.#script.spans) {
      const position = turns.findIndex((candidate) => candidate.id === turn);
      const rounds = Math.min(
        repeat,
        Math.ceil((this.#number - 1 - before - position) / turns.length),
      );
      if (position >= 0 && rounds > 0) latest = before + (rounds - 1) * turns.length + position + 1;
      before += turns.length * repeat;
    }
    return latest;
  }

  #results(turn: number): ToolResult[] | undefined {
    let count = 0;
    for (const [at, message] of this.#messages.entries()) {
      if (message.role === "user") count += message.repliesBefore ?? 0;
      if (message.role !== "assistant" || ++count !== turn) continue;
      const next = this.#messages[at + 1];
      return next?.role === "tool" ? next.results : undefined;
    }
    return undefined;
  }
}

function readField(
  result: ToolResult,
  field: "text" | "error" | "structured" | "content",
  path: readonly string[],
): Json | undefined {
  switch (field) {
    case "text":
      return textOf(result);
    case "error":
      return result.isError;
    case "content":
      return partAt(result.content, path);
    case "structured":
      return partAt(result.structured ?? parsed(textOf(result)), path);
  }
}

function textOf(result: ToolResult): string {
  return result.content.map((block) => partAt(block, ["text"]))
    .filter((text) => typeof text === "string").join("\n");
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
