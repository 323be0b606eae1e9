/** What of a run's journal is durable at this moment, read anew only as far as it has grown; and what may be shown or sent on the strength of it. */
import type { RunEvent } from "../../src/base/operations.ts";
import type { Entry } from "../../src/journal/entry.ts";
import type { WithoutHead } from "../../src/kernel/ports.ts";
import type { FaultyDisk } from "../doubles/faulty_disk.ts";

const NEWLINE = 10;

/** The entry that a key stands for. */
export interface Made {
  seq: number;
  /** Epoch milliseconds. */
  ts: number;
}

export class DurableView {
  readonly #disk: FaultyDisk;
  readonly #path: string;
  readonly #keys = new Map<string, Made>();
  readonly #intents = new Set<string>();
  readonly #attempts = new Map<string, number>();
  #offset = 0;

  constructor(disk: FaultyDisk, journalPath: string) {
    this.#disk = disk;
    this.#path = journalPath;
  }

  /** The last entry that this key stands for, once it is durable. */
  find(key: string): Made | undefined {
    this.#read();
    return this.#keys.get(key);
  }

  hasIntent(idempotencyKey: string): boolean {
    if (!this.#intents.has(idempotencyKey)) this.#read();
    return this.#intents.has(idempotencyKey);
  }

  /** The attempt of the call that a child works for, once its intent is durable. */
  attemptFor(childRunId: string): number | undefined {
    this.#read();
    return this.#attempts.get(childRunId);
  }

  #read(): void {
    const bytes = this.#disk.peekDurable(this.#path) ?? new Uint8Array();
    if (bytes.length < this.#offset) this.#offset = 0;
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    if (end <= this.#offset) return;
    const text = new TextDecoder().decode(bytes.subarray(this.#offset, end - 1));
    this.#offset = end;
    for (const line of text.split("\n")) this.#take(line);
  }

  #take(line: string): void {
    const entry = parse(line);
    if (entry === undefined) return;
    const { seq, ts } = entry;
    for (const key of keysOf(entry)) this.#keys.set(key, { seq, ts });
    if (entry.type === "call.intent" || entry.type === "access.intent") {
      this.#intents.add(entry.idempotency_key);
    }
    if (entry.type === "call.intent" && entry.child_run_id !== undefined) {
      this.#attempts.set(entry.child_run_id, entry.attempt);
    }
  }
}

function parse(line: string): Entry | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Key of what must be durable before this event is shown; undefined for what may be shown at once. */
export function shownKey(event: WithoutHead<RunEvent>): string | undefined {
  if (event.type === "call.finished") return `result ${event.call}#${event.attempt}`;
  if (event.type === "call.unknown") return `unknown ${event.call}#${event.attempt}`;
  if (event.type === "call.settled") return `settled ${event.call}`;
  if (event.type === "model.finished") return `reply ${event.turn}`;
  if (event.type === "mount.ready") return `mount ${event.server}`;
  if (event.type === "run.exited") return "exited";
  if (event.type === "run.started") return "started";
  if (event.type === "run.resumed") return "resumed";
  if (event.type === "run.suspended" && event.reason !== "journal") return "suspended";
  return undefined;
}

/** Keys that this entry stands for. */
export function keysOf(entry: Entry): string[] {
  if (entry.type === "call.result") {
    const kind = entry.outcome === "unknown" ? "unknown" : "result";
    return [`${kind} ${entry.call}#${entry.attempt}`];
  }
  if (entry.type === "call.settled") {
    const result = entry.how === "answer" ? [`result ${entry.call}#${entry.attempt}`] : [];
    return [`settled ${entry.call}`, ...result];
  }
  if (entry.type === "access.result") return [`access ${entry.call}`];
  if (entry.type === "model.reply") return [`reply ${entry.turn}`];
  if (entry.type === "mount.ready") return [`mount ${entry.server}`];
  if (entry.type === "run.exited") return ["exited"];
  if (entry.type === "run.started") return ["started"];
  if (entry.type === "run.resumed") return ["resumed"];
  if (entry.type === "run.suspended") return ["suspended"];
  return [];
}
