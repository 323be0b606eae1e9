/**
 * What a run's model and tools answered, taken from its journal, to be answered again.
 *
 * A reply belongs to its turn. A result belongs to its tool and arguments; of the same call made several times the results come in their order, and the last one stays.
 */
import type { EffectClass } from "../../base/effect.ts";
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import { canonicalJson, isJsonObject, type Json, sha256Hex } from "../../base/json.ts";
import type { Storage } from "../../base/storage.ts";
import type { BlobRef, CallAnswer, Entry, EntryOf } from "../../journal/entry.ts";
import { BlobStore, readRun } from "../../journal/mod.ts";
import { answerOf } from "../../kernel/ledger.ts";
import type { ToolDefinition } from "../../vfs/device.ts";

/** A server as it was mounted last. */
export interface RecordedServer {
  server: string;
  era: string;
  protocolVersion: string;
  /** Undefined where the journal doesn't have them. */
  definitions: ToolDefinition[] | undefined;
}

/** A call that was made, in the order in which calls were made. */
export interface RecordedCall {
  call: string;
  tool: string;
  effect: EffectClass;
  inputSha256: string;
  answer: CallAnswer | undefined;
}

export interface Recording {
  runId: string;
  start: EntryOf<"run.started">;
  /** Of the last incarnation. */
  spec: BlobRef;
  intent: string;
  replies: Map<number, EntryOf<"model.reply">>;
  calls: RecordedCall[];
  servers: RecordedServer[];
  exit: EntryOf<"run.exited"> | undefined;
  /** Whether its model was asked for summaries as well. */
  wasCompacted: boolean;
}

/** Reads a run. Rejects with JOURNAL_DAMAGED, NOT_FOUND. */
export async function readRecording(
  storage: Storage,
  folder: string,
  runId: string,
): Promise<Recording> {
  const reading = new Reading();
  await readRun(storage, folder, (entry) => reading.take(entry));
  const { start, spec } = reading;
  if (start === undefined || spec === undefined) {
    throw new SysError("NOT_FOUND", `Run ${shortRunId(runId)} never began`, {
      exitCode: EXIT_USAGE,
    });
  }
  const blobs = new BlobStore(storage, folder);
  const servers = await Promise.all([...reading.mounts.values()].map(async (mount) => ({
    server: mount.server,
    era: mount.era,
    protocolVersion: mount.protocol_version,
    definitions: await definitionsOf(mount, blobs),
  })));
  const { intent, replies, exit, wasCompacted } = reading;
  const calls = [...reading.calls.values()];
  return { runId, start, spec, intent, replies, calls, servers, exit, wasCompacted };
}

class Reading {
  start: EntryOf<"run.started"> | undefined;
  spec: BlobRef | undefined;
  intent = "";
  exit: EntryOf<"run.exited"> | undefined;
  wasCompacted = false;
  readonly replies = new Map<number, EntryOf<"model.reply">>();
  /** By call id. */
  readonly calls = new Map<string, RecordedCall>();
  readonly mounts = new Map<string, EntryOf<"mount.ready" | "mount.changed">>();

  take(entry: Entry): void {
    switch (entry.type) {
      case "run.started":
        this.start = entry;
        this.spec = entry.spec;
        this.intent = entry.intent;
        break;
      case "run.resumed":
        this.spec = entry.spec;
        this.exit = undefined;
        break;
      case "mount.ready":
        this.mounts.set(entry.server, entry);
        break;
      case "model.reply":
        this.replies.set(entry.turn, entry);
        break;
      case "call.intent":
        this.calls.set(entry.call, {
          call: entry.call,
          tool: entry.tool,
          effect: entry.effect,
          inputSha256: entry.input_sha256,
          answer: undefined,
        });
        break;
      case "call.result":
      case "call.settled":
        this.#answer(entry);
        break;
      case "context.compacted":
        this.wasCompacted = true;
        break;
      case "run.exited":
        this.exit = entry;
        break;
    }
  }

  #answer(entry: EntryOf<"call.result"> | EntryOf<"call.settled">): void {
    const made = this.calls.get(entry.call);
    const answer = answerOf(entry);
    if (made !== undefined && answer !== undefined) made.answer = answer;
  }
}

async function definitionsOf(
  { definitions, tools }: EntryOf<"mount.ready" | "mount.changed">,
  blobs: BlobStore,
): Promise<ToolDefinition[] | undefined> {
  if (definitions === undefined) return undefined;
  const said: Json = JSON.parse(new TextDecoder().decode(await blobs.get(definitions)));
  // Only what was offered then.
  const list: unknown[] = Array.isArray(said) ? said : [];
  return list.filter(isDefinition).filter(({ name }) => Object.hasOwn(tools, name));
}

function isDefinition(value: unknown): value is ToolDefinition {
  return typeof value === "object" && value !== null && "name" in value &&
    typeof value.name === "string" && "modelName" in value &&
    typeof value.modelName === "string" && "inputSchema" in value;
}

/** Hash by which a call's arguments are known. */
export function inputHash(input: Json): string {
  return sha256Hex(canonicalJson(input));
}

/** Results of a recording, given out once each in their order, the last one again and again. */
export class RecordedAnswers {
  readonly #answers = new Map<string, CallAnswer[]>();

  constructor({ calls }: Recording) {
    for (const { tool, inputSha256, answer } of calls) {
      if (answer === undefined) continue;
      const key = `${tool}\n${inputSha256}`;
      const known = this.#answers.get(key);
      if (known === undefined) this.#answers.set(key, [answer]);
      else known.push(answer);
    }
  }

  /** Undefined for a call that is not in the record. */
  next(tool: string, input: Json): CallAnswer | undefined {
    const known = this.#answers.get(
      `${tool}\n${inputHash(isJsonObject(input) ? input : input ?? {})}`,
    );
    return known !== undefined && known.length > 1 ? known.shift() : known?.[0];
  }
}
