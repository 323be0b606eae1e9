/**
 * A run as Markdown that a person reads: what was asked, what the model said, each call with its arguments and what became of it, unknown outcomes and how they were settled, the end and what it took.
 *
 * Words of models and servers stand in quotes and fences, so that they can't pass for the transcript's own; long ones are shortened, which is said.
 */
import { shortRunId } from "../base/ids.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import { countText, countTools } from "../base/resource_tools.ts";
import type { CallAnswer, Entry, EntryOf } from "../journal/entry.ts";
import type { Readable } from "../journal/mod.ts";

/** Characters of one argument or result that are shown. */
const SHOWN_CHARS_MAX = 4_000;

// deno-lint-ignore no-control-regex
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Pieces of the transcript, in order. */
export async function* transcriptOf(
  run: JsonObject,
  entries: AsyncIterable<Readable>,
): AsyncGenerator<string> {
  yield head(run);
  const writer = new Writer();
  for await (const readable of entries) {
    const text = readable.kind === "entry" ? writer.entry(readable.entry) : note(
      `Record ${readable.record} at byte ${readable.offset} can't be read: ${readable.problem}`,
    );
    if (text !== "") yield text;
  }
  yield summary(run);
}

class Writer {
  /** Arguments of the calls of the last reply. */
  #inputs = new Map<string, Json>();
  readonly #tools = new Map<string, string>();

  entry(entry: Entry): string {
    switch (entry.type) {
      case "run.started":
        return `## Intent\n\n${quoted(entry.intent === "" ? "(none)" : entry.intent)}\n`;
      case "run.resumed":
        return note(`Resumed as pid ${entry.pid} at ${timeOf(entry.ts)}`) +
          (entry.intent === undefined ? "" : `## Intent\n\n${quoted(entry.intent)}\n`);
      case "mount.ready":
        return note(`Mounted ${entry.server}: ${countText(countTools(entry.tools))}`);
      case "mount.changed":
        return note(`Tools of ${entry.server} changed: ${countText(countTools(entry.tools))} now`);
      case "mount.failed":
        return note(`${entry.server} could not be mounted: ${entry.error.message}`);
      case "model.request":
        return this.#request(entry);
      case "model.reply":
        return this.#reply(entry);
      case "context.exceeded":
        return note(`The conversation was too long for the model: ${entry.error.message}`);
      case "context.compacted":
        return this.#compacted(entry);
      case "call.intent":
        return this.#call(entry);
      case "call.result":
        return this.#result(entry);
      case "call.settled":
        return this.#settled(entry);
      case "access.intent":
        return note(`A person: ${entry.operation} ${entry.device} (${entry.call})`);
      case "access.result":
        return note(`${entry.call} of a person: ${entry.outcome}${errorText(entry.error)}`);
      case "journal.cut":
        return note(
          `Up to ${entry.records} records from record ${entry.from_seq} on were cut off; what they did is not known`,
        );
      case "child.spawned":
        return note(`Call ${entry.call} is run ${shortRunId(entry.run_id)}, pid ${entry.pid}`);
      case "child.exited":
        return note(`Run ${shortRunId(entry.run_id)} of call ${entry.call}: ${entry.status}`);
      case "timer":
        return "";
      case "budget.changed":
        return note(`Limits changed: ${JSON.stringify(entry.budget)}`);
      case "signal":
        return note(`Signal ${entry.signal} from the ${entry.origin}`);
      case "run.suspended":
        return note(`Suspended: ${entry.reasons.join(", ")}${errorText(entry.error)}`);
      case "run.exited":
        return note(`Exited: ${entry.status}, code ${entry.exit_code}${errorText(entry.error)}`);
    }
  }

  #compacted({ summary, from, to, error }: EntryOf<"context.compacted">): string {
    const what = `${to - from} earlier messages`;
    if (summary !== undefined) {
      return note(`A summary of ${what} took their place`) + quoted(summary);
    }
    return note(`The results in ${what} were left out${errorText(error)}`);
  }

  #request(
    { turn, attempt, provider, model, fallback_for, purpose }: EntryOf<"model.request">,
  ): string {
    if (purpose === "summary") return note(`Asked ${provider}/${model} for a summary`);
    const failed = fallback_for === undefined
      ? ""
      : `, because ${fallback_for.model} failed (${plain(fallback_for.error.message)})`;
    const again = attempt === 1 ? "" : `, attempt ${attempt}`;
    return `## Turn ${turn}\n\n_${plain(`${provider}/${model}${again}`)}${failed}_\n\n`;
  }

  #reply({ turn, message, finish_reason }: EntryOf<"model.reply">): string {
    this.#inputs = new Map();
    let text = "";
    let position = 0;
    const parts = isJsonObject(message) ? message["parts"] : undefined;
    for (const part of Array.isArray(parts) ? parts : []) {
      if (!isJsonObject(part)) continue;
      const { type, text: said, tool, input, malformed } = part;
      if (type === "tool-call") {
        const call = `t${turn}.${++position}`;
        this.#inputs.set(call, malformed ?? input ?? null);
        this.#tools.set(call, String(tool));
      } else if (typeof said === "string" && said.trim() !== "") {
        text += type === "reasoning" ? `_Thinking_\n\n${quoted(said)}\n` : `${quoted(said)}\n`;
      }
    }
    const usual = finish_reason === "stop" || finish_reason === "tool-calls";
    return usual ? text : text + note(`The reply ended early: ${finish_reason}`);
  }

  #call({ call, attempt, tool, effect }: EntryOf<"call.intent">): string {
    this.#tools.set(call, tool);
    const again = attempt === 1 ? "" : `, attempt ${attempt}`;
    const input = this.#inputs.get(call);
    const shown = input === undefined ? "" : fenced(JSON.stringify(input, null, 2), "json");
    return `### Call ${call}: ${code(tool)} (${effect}${again})\n\n${shown}`;
  }

  #result(entry: EntryOf<"call.result">): string {
    const { call, duration_ms } = entry;
    if (entry.outcome === "unknown") {
      const why = entry.error === undefined ? "" : ` (${plain(entry.error.message)})`;
      return note(
        `**Call ${call}: outcome unknown** (${entry.cause})${why}; it may or may not have taken effect`,
      );
    }
    const tool = this.#tools.get(call);
    const name = tool === undefined ? "" : ` of ${code(tool)}`;
    return `**${call}**${name}: ${entry.outcome}, ${duration_ms} ms\n\n${answerText(entry)}`;
  }

  #settled({ call, how, by, answer }: EntryOf<"call.settled">): string {
    const told = answer === undefined ? "" : answerText(answer);
    return note(`Call ${call} was settled by ${by}: ${how}`) + told;
  }
}

function head(run: JsonObject): string {
  const { run_id, agent, model, cwd, pids, started_ms, forked_from } = run;
  const rows: [string, Json | undefined][] = [
    ["Run", run_id],
    ["Model", model],
    ["Folder", cwd],
    ["Pids", Array.isArray(pids) ? pids.join(", ") : undefined],
    ["Started", typeof started_ms === "number" ? timeOf(started_ms) : undefined],
    ["Forked from", isJsonObject(forked_from) ? forked_from["run_id"] : undefined],
  ];
  return `# ${plain(String(agent ?? "Run"))}\n\n${list(rows)}\n`;
}

function summary(run: JsonObject): string {
  const { state, reason, status, exit_code, turns, tool_calls, tokens_used } = run;
  const { cost_usd, elapsed_ms, result, error, unknown_calls, tree } = run;
  const all = isJsonObject(tree) ? tree : {};
  const how = [state, status ?? reason].filter((part) => part !== undefined).join(", ");
  const rows: [string, Json | undefined][] = [
    ["State", how],
    ["Exit code", exit_code],
    ["Error", isJsonObject(error) ? error["message"] : undefined],
    ["Turns", turns],
    ["Calls", tool_calls],
    ["Tokens", tokens_used],
    ["Cost, US dollars", cost_usd ?? "not known"],
    ["Turns with all below it", all["turns"]],
    ["Tokens with all below it", all["tokens_used"]],
    ["Cost with all below it, US dollars", all["cost_usd"]],
    ["Active time, ms", elapsed_ms],
  ];
  const unknown = (Array.isArray(unknown_calls) ? unknown_calls : []).filter(isJsonObject);
  const open = unknown.map(({ call, tool, cause }) =>
    note(`Outcome unknown, not settled: ${String(call)} ${String(tool)} (${String(cause)})`)
  );
  const final = typeof result === "string" && result !== "" ? `${quoted(result)}\n` : "";
  return `## End\n\n${final}${list(rows)}\n${open.join("")}`;
}

function list(rows: readonly [string, Json | undefined][]): string {
  return rows.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => `- ${name}: ${plain(String(value))}\n`).join("");
}

function answerText({ content, structured, whole }: CallAnswer): string {
  const text = content.map(blockText).filter((part) => part !== "").join("\n");
  const data = text === "" && structured !== undefined ? JSON.stringify(structured, null, 2) : text;
  const cut = whole === undefined ? "" : note(`The result was cut; it has ${whole.bytes} bytes`);
  return fenced(data === "" ? "(nothing)" : data) + cut;
}

function blockText(block: Json): string {
  if (!isJsonObject(block)) return "";
  const { type, text } = block;
  return type === "text" && typeof text === "string" ? text : `[${String(type)}]`;
}

function errorText(error: { message: string } | undefined): string {
  return error === undefined ? "" : `: ${plain(error.message)}`;
}

function note(text: string): string {
  return `_${plain(text).replaceAll(/\s+/g, " ")}_\n\n`;
}

function quoted(text: string): string {
  return `${plain(text).split("\n").map((line) => `> ${line}`.trimEnd()).join("\n")}\n`;
}

/** In a fence that is longer than any in the text. */
function fenced(text: string, language = ""): string {
  const shown = plain(shortened(text));
  const longest = Math.max(2, ...[...shown.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${shown}\n${fence}\n\n`;
}

function code(text: string): string {
  return `\`${plain(text).replaceAll("`", "'")}\``;
}

function shortened(text: string): string {
  if (text.length <= SHOWN_CHARS_MAX) return text;
  const kept = text.slice(0, SHOWN_CHARS_MAX).toWellFormed();
  return `${kept}\n… ${text.length - SHOWN_CHARS_MAX} more characters`;
}

/** Without what a terminal would obey. */
function plain(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
