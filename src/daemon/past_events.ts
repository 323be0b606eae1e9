/**
 * A run's events, made again from its journal: what `logs` prints and `attach` begins with.
 *
 * Secrets are out of it: results and errors were redacted before they were kept, and what only sinks must not show (literal values of the manifest) is redacted here.
 *
 * The same events as a follower saw live, streamed text as one piece; what was never durable (progress, pauses before repeats) is not among them.
 */
import { isJsonObject, type Json } from "../base/json.ts";
import type { RunEvent } from "../base/operations.ts";
import { dirname } from "../base/posix_path.ts";
import type { Redactor } from "../base/redaction.ts";
import type { Storage } from "../base/storage.ts";
import { countTools } from "../base/resource_tools.ts";
import type { CallAnswer, Entry, EntryOf } from "../journal/entry.ts";
import { readEnds, readRun } from "../journal/mod.ts";
import { answerOf } from "../kernel/ledger.ts";
import { lostNotice } from "../kernel/lost_accesses.ts";
import type { WithoutHead } from "../kernel/ports.ts";
import { MASKED, preview } from "../kernel/answers.ts";
import { READ_RESULT } from "../policy/result_piece.ts";
import { redactEvent } from "./run_watch.ts";
import { storedRedactor } from "./stored_secrets.ts";

/** Events of the run in this folder, oldest first. */
export async function* eventsOfRun(storage: Storage, folder: string): AsyncGenerator<RunEvent> {
  const redactor = await storedRedactor(storage, folder);
  const story = new Story(redactor);
  const events: RunEvent[] = [];
  await readRun(storage, folder, (entry) => {
    for (const event of story.take(entry)) events.push(event);
  });
  for (const event of events) {
    const child = event.type === "call.started" ? story.childOf(event.call) : undefined;
    if (event.type !== "call.started" || event.input !== null || child === undefined) yield event;
    else {
      const input = await childInput(storage, `${dirname(folder)}/${child}`);
      yield redactEvent({ ...event, input }, redactor);
    }
  }
}

/** What a child was asked for: a workflow's nodes are in no reply, but each child's journal begins with it. Null where it is gone. */
async function childInput(storage: Storage, folder: string): Promise<Json> {
  const { first } = await readEnds(storage, folder).catch(() => ({ first: undefined }));
  return first?.type === "run.started" ? { intent: first.intent } : null;
}

/** Follows the entries far enough to tell each as an event. */
export class Story {
  readonly #redactor: Redactor;
  #pid = 0;
  #agent = "";
  #intent = "";
  #runId = "";
  readonly #inputs = new Map<string, Json>();
  /** Model-facing names of tools whose content is masked. */
  readonly #sensitive = new Set<string>();
  readonly #intents = new Map<string, EntryOf<"call.intent">>();
  readonly #accesses = new Map<string, EntryOf<"access.intent">>();

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** The run of a call that is a child. */
  childOf(call: string): string | undefined {
    return this.#intents.get(call)?.child_run_id;
  }

  take(entry: Entry): RunEvent[] {
    const head = (event: WithoutHead<RunEvent>): RunEvent => {
      const { type, ...rest } = event;
      return redactEvent(
        { type, pid: this.#pid, ts: entry.ts, ...rest } as RunEvent,
        this.#redactor,
      );
    };
    return this.#tell(entry).map(head);
  }

  #tell(entry: Entry): WithoutHead<RunEvent>[] {
    switch (entry.type) {
      case "run.started":
        this.#pid = entry.pid;
        this.#agent = entry.agent;
        this.#intent = entry.intent;
        this.#runId = entry.run_id;
        return [{
          ...this.#begin("run.started", entry.model),
          ...(entry.forked_from === undefined ? {} : { forked_from: entry.forked_from.run_id }),
        }];
      case "run.resumed":
        this.#pid = entry.pid;
        this.#intent = entry.intent ?? this.#intent;
        return [this.#begin("run.resumed", entry.model)];
      case "mount.changed":
        this.#noteSensitive(entry.tools);
        return [];
      case "mount.ready":
        this.#noteSensitive(entry.tools);
        return [{
          type: "mount.ready",
          server: entry.server,
          ...countTools(entry.tools),
          duration_ms: 0,
          protocol_version: entry.protocol_version,
        }];
      case "mount.failed":
        return [{
          type: "mount.failed",
          server: entry.server,
          required: entry.required,
          error: entry.error,
        }];
      case "model.request":
        return [{
          type: entry.purpose === "summary" ? "context.compacting" : "model.started",
          turn: entry.turn,
        }];
      case "model.reply":
        return this.#reply(entry);
      case "context.compacted":
        return [compacted(entry)];
      case "call.intent":
        return [this.#call(entry)];
      case "call.result":
        return [this.#result(entry)];
      case "call.settled":
        return [this.#settled(entry)];
      case "access.intent":
        this.#accesses.set(entry.call, entry);
        return [];
      case "access.result":
        return this.#access(entry);
      case "run.suspended":
        return [{ type: "run.suspended", reason: entry.reason }];
      case "run.exited":
        return [{ type: "run.exited", status: entry.status, exit_code: entry.exit_code }];
      default:
        return [];
    }
  }

  #noteSensitive(tools: EntryOf<"mount.ready" | "mount.changed">["tools"]): void {
    for (const { name, sensitive } of Object.values(tools)) {
      if (sensitive) this.#sensitive.add(name);
    }
  }

  /** What reads a cut result shows what that result showed. */
  #noteKept(call: string, answer: CallAnswer | undefined): void {
    if (answer?.whole === undefined) return;
    const { tool = "" } = this.#intents.get(call) ?? {};
    if (this.#sensitive.has(tool)) this.#sensitive.add(READ_RESULT);
  }

  #begin(
    type: "run.started" | "run.resumed",
    model: string,
  ): Extract<WithoutHead<RunEvent>, { type: "run.started" | "run.resumed" }> {
    return { type, run_id: this.#runId, agent: this.#agent, intent: this.#intent, model };
  }

  #reply(entry: EntryOf<"model.reply">): WithoutHead<RunEvent>[] {
    const { turn } = entry;
    const parts = isJsonObject(entry.message) ? entry.message["parts"] : undefined;
    const events: WithoutHead<RunEvent>[] = [];
    let position = 0;
    for (const part of Array.isArray(parts) ? parts : []) {
      if (!isJsonObject(part)) continue;
      const { type, text, input } = part;
      if (type === "tool-call") this.#inputs.set(`t${turn}.${++position}`, input ?? null);
      else if (type === "text" && typeof text === "string" && text !== "") {
        events.push({ type: "model.delta", turn, kind: "text", text });
      }
    }
    const { input_tokens, output_tokens } = entry.usage;
    const { duration_ms } = entry;
    return [...events, { type: "model.finished", turn, duration_ms, input_tokens, output_tokens }];
  }

  #call(entry: EntryOf<"call.intent">): WithoutHead<RunEvent> {
    const { call, attempt, tool } = entry;
    this.#intents.set(call, entry);
    const input = this.#sensitive.has(tool) ? MASKED : this.#inputs.get(call) ?? null;
    return { type: "call.started", call, attempt, tool, input };
  }

  #settled({ call, how, by, answer }: EntryOf<"call.settled">): WithoutHead<RunEvent> {
    this.#noteKept(call, answer);
    const tool = this.#intents.get(call)?.tool;
    return { type: "call.settled", call, ...(tool === undefined ? {} : { tool }), how, by };
  }

  /** What a person wrote to a device, and what came of it; reading has done nothing. */
  #access({ call, outcome, ...rest }: EntryOf<"access.result">): WithoutHead<RunEvent>[] {
    const intent = this.#accesses.get(call);
    if (intent === undefined || intent.operation === "read") return [];
    const { device } = intent;
    if (outcome !== "unknown") {
      return [{ type: "notice", message: `A person wrote to ${device} (${call}): ${outcome}` }];
    }
    const message = "cause" in rest && rest.cause === "crash"
      ? lostNotice(intent)
      : `It isn't known whether a person's write to "${device}" (${call}) took effect`;
    return [{ type: "notice", message }];
  }

  #result(entry: EntryOf<"call.result">): WithoutHead<RunEvent> {
    const { call, attempt, duration_ms } = entry;
    const answer = answerOf(entry);
    this.#noteKept(call, answer);
    if (answer === undefined) {
      const cause = entry.outcome === "unknown" ? entry.cause : "crash";
      const { tool = "", effect = "write" } = this.#intents.get(call) ?? {};
      const message = entry.error === undefined ? {} : { message: entry.error.message };
      return { type: "call.unknown", call, attempt, tool, effect, cause, ...message };
    }
    const { outcome } = answer;
    const masked = this.#sensitive.has(this.#intents.get(call)?.tool ?? "");
    const shown = masked ? MASKED : preview(answer, this.#redactor);
    return { type: "call.finished", call, attempt, outcome, duration_ms, preview: shown };
  }
}

function compacted(entry: EntryOf<"context.compacted">): WithoutHead<RunEvent> {
  const { turn, from, to, summary, error } = entry;
  return {
    type: "context.compacted",
    turn,
    how: summary === undefined ? "results" : "summary",
    messages: to - from,
    ...(error === undefined ? {} : { error }),
  };
}
