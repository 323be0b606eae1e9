/** The two folds of a run, kernel's and program's, kept in step; and their checkpoint. */
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import type { Entry } from "../journal/entry.ts";
import { Ledger, LEDGER_VERSION, type LedgerState } from "./ledger.ts";
import type { Action, Program, PromptHead } from "./program.ts";

export class RunState<S, P extends PromptHead> {
  readonly ledger = new Ledger();
  #program: Program<S, P>;
  #state: S;

  constructor(program: Program<S, P>) {
    this.#program = program;
    this.#state = program.initial();
  }

  /** Versions of the reducers; a checkpoint of others doesn't fit. */
  get versions(): { [reducer: string]: number } {
    return { kernel: LEDGER_VERSION, [this.#program.name]: this.#program.version };
  }

  /** Goes on with a program of the same reducer that decides with other texts. */
  use(program: Program<S, P>): void {
    this.#program = program;
  }

  fold(entry: Entry): void {
    this.ledger.fold(entry);
    this.#state = this.#program.reduce(this.#state, entry);
  }

  decide(): Action<P>[] {
    return this.#program.decide(this.#state);
  }

  /** What the calls that have begun are about, as a program of the same reducer sees it. */
  subjects(program: Program<S, P>): ReadonlyMap<string, Json> {
    return program.subjects?.(this.#state) ?? new Map();
  }

  /** The summary in a model's reply, as the program reads it. */
  summaryOf(message: Json, finishReason: string): string | undefined {
    return this.#program.summaryOf?.(message, finishReason);
  }

  /** A snapshot that later folds don't change. */
  save(): Json {
    const saved = { ledger: this.ledger.save(), program: this.#program.save(this.#state) };
    return JSON.parse(JSON.stringify(saved));
  }

  load(saved: Json): void {
    const { ledger, program } = saved as unknown as { ledger: LedgerState; program: Json };
    this.ledger.load(ledger);
    this.#state = this.#program.load(program);
  }

  /** Hash of all that was folded: equal states give equal hashes. For tests and checks. */
  fingerprint(): string {
    return sha256Hex(canonicalJson(this.save()));
  }
}
