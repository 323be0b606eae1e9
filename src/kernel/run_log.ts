/**
 * A run's journal and its folds as one thing: what is appended is folded at once, and what must be durable before it is shown waits here.
 *
 * Invariants
 * 1. Every entry is folded exactly once, in seq order, in the same turn of the event loop as its append.
 * 2. `show` runs its callback only after the entry's barrier; callbacks that wait run in seq order.
 * 3. `wake` is queued before the journal's own write is: what the woken runner appends (the intents of a reply) leaves in the same write as what woke it.
 * 4. Whatever is appended has passed `redactEntry`: errors hold no secrets in the journal, in the folds, and so for the model.
 * 5. The first journal failure is reported once, to `onFailure`, and every later append throws it.
 */
import type { Clock } from "../base/clock.ts";
import { type SysError, toSysError } from "../base/errors.ts";
import type { Redactor } from "../base/redaction.ts";
import type { Entry, EntryBody } from "../journal/entry.ts";
import type { Journal, Prepared } from "../journal/journal.ts";
import { redactEntry } from "./redacted_entry.ts";
import type { Observer } from "./ports.ts";

export class RunLog {
  readonly journal: Journal;
  readonly #clock: Clock;
  readonly #fold: (entry: Entry) => void;
  #wakeQueued = false;
  readonly #showDelayMs: number;
  readonly #waiting: { seq: number; show: () => void; isFree?: true }[] = [];
  #showing = false;
  #failure: SysError | undefined;
  #timerCancel: (() => void) | undefined;
  /** Takes the run's secrets out of what is appended; none are known before its parts are made. */
  redactor: Redactor | undefined;
  /** Called once after each round of appends. */
  onEntries: (() => void) | undefined;
  onFailure: ((error: SysError) => void) | undefined;

  constructor(
    journal: Journal,
    options: { clock: Clock; fold: (entry: Entry) => void; showDelayMs: number },
  ) {
    this.journal = journal;
    this.#clock = options.clock;
    this.#fold = options.fold;
    this.#showDelayMs = options.showDelayMs;
  }

  get failure(): SysError | undefined {
    return this.#failure;
  }

  /** Appends and folds; `show` runs once the entry is durable. Throws the journal's error when it takes no more. */
  append(body: EntryBody | Prepared, show?: () => void): Entry {
    this.#wake();
    let entry: Entry;
    try {
      entry = this.journal.append("type" in body ? this.#redacted(body) : body);
    } catch (thrown) {
      throw this.#fail(thrown);
    }
    this.#fold(entry);
    if (show !== undefined) this.show(entry.seq, show);
    return entry;
  }

  /** Makes an entry ready for `append`, its long strings durable. */
  prepare(body: EntryBody): Prepared | Promise<Prepared> {
    return this.journal.prepare(this.#redacted(body));
  }

  /** Appends an entry that may hold long strings; these are durable first. */
  async appendLarge(body: EntryBody, show?: () => void): Promise<Entry> {
    const prepared = this.prepare(body);
    if (!(prepared instanceof Promise)) return this.append(prepared, show);
    try {
      return this.append(await prepared, show);
    } catch (thrown) {
      throw this.#fail(thrown);
    }
  }

  /** Resolves when all up to `seq` is durable. */
  async barrier(seq: number): Promise<void> {
    try {
      await this.journal.barrier(seq);
    } catch (thrown) {
      throw this.#fail(thrown);
    }
    this.#showDurable();
  }

  /** Runs `show` once entry `seq` is durable: with a sync that happens anyway, or else with one of its own. */
  show(seq: number, show: () => void): void {
    // Callers come a few microtasks after their append, and so not always in its order.
    const after = this.#waiting.findLastIndex((waiting) => waiting.seq <= seq);
    this.#waiting.splice(after + 1, 0, { seq, show });
    this.#timerCancel ??= this.#clock.after(this.#showDelayMs, () => {
      this.#timerCancel = undefined;
      const last = this.#waiting.at(-1);
      if (last) this.barrier(last.seq).catch(() => {});
    });
  }

  /** An observer that hears everything in its order: what needn't be durable waits for what came before it and must be. */
  ordered(observer: Observer): Observer {
    return { ...observer, emit: (event) => this.#tell(() => observer.emit(event)) };
  }

  #tell(show: () => void): void {
    const last = this.#waiting.at(-1);
    if (this.#showing || last === undefined) show();
    else this.#waiting.push({ seq: last.seq, show, isFree: true });
  }

  /** Forgets what waits to be shown; what needn't be durable is told now. */
  discardShows(): void {
    this.#timerCancel?.();
    this.#timerCancel = undefined;
    for (const { show, isFree } of this.#waiting.splice(0)) if (isFree) show();
  }

  #redacted(body: EntryBody): EntryBody {
    return this.redactor === undefined ? body : redactEntry(body, this.redactor);
  }

  #wake(): void {
    if (this.#wakeQueued) return;
    this.#wakeQueued = true;
    queueMicrotask(() => {
      this.#wakeQueued = false;
      this.onEntries?.();
    });
  }

  #showDurable(): void {
    const { durableSeq } = this.journal;
    this.#showing = true;
    while (this.#waiting[0] !== undefined && this.#waiting[0].seq <= durableSeq) {
      this.#waiting.shift()?.show();
    }
    this.#showing = false;
    if (this.#waiting.length > 0) return;
    this.#timerCancel?.();
    this.#timerCancel = undefined;
  }

  #fail(thrown: unknown): SysError {
    if (this.#failure === undefined) {
      this.#failure = toSysError(thrown);
      this.discardShows();
      this.onFailure?.(this.#failure);
    }
    return this.#failure;
  }
}
