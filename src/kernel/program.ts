/**
 * What the kernel runs: a pure state machine over journal entries (design, section 2).
 *
 * The kernel folds every entry with `reduce` and asks `decide` after each; it starts the actions whose key has no entry yet. A fresh run and a resumed one are the same code.
 */
import type { Entry } from "../journal/entry.ts";
import type { Json } from "../base/json.ts";

/** The part of a model request that the kernel needs; a program adds what its model needs. */
export interface PromptHead {
  /** SHA-256 over all that the program puts into the request. */
  readonly sha256: string;
  /** Guess of its tokens, for budgets. */
  readonly tokensEstimate: number;
}

export type Action<P extends PromptHead> =
  | {
    kind: "model";
    key: string;
    turn: number;
    attempt: number;
    prompt: P;
    /** Where it is too long for the model, the program is told (`context.exceeded`) and can make it shorter. */
    compactable?: true;
  }
  | {
    /** Makes the history shorter before the turn is asked for; nothing of it is in the history itself. */
    kind: "compact";
    key: string;
    turn: number;
    attempt: number;
    /** Messages concerned, as in `context.compacted`. */
    from: number;
    to: number;
    /** Asks for a summary of them; absent: their results are left out without one. */
    prompt?: P;
  }
  | {
    kind: "call";
    key: string;
    call: string;
    attempt: number;
    /** Model-facing tool name. */
    tool: string;
    input: Json;
    /** Why this call can't be sent whatever the tool (its arguments aren't JSON); it gets a known error as its result. */
    defect?: string;
    /** The child that this call came to in an earlier attempt, and that ended without success, is taken up again in place of a new one, as long as there is one. */
    continues?: true;
  }
  /** Waits so long, then an entry `timer` with this key is there. */
  | { kind: "timer"; key: string; ms: number }
  | {
    kind: "exit";
    status: "completed" | "failed";
    result: string;
    error?: { code: string; message: string };
  };

export type CallAction = Extract<Action<PromptHead>, { kind: "call" }>;

/**
 * **Contract.** `reduce` and `decide` are pure: no clock, no I/O, no randomness; `reduce` may mutate and return its state. `decide` gives *all* actions that should exist now, those in flight included; an action's key is the same whenever it is given again. `[]` means wait. An exit takes effect only when nothing is in flight.
 * Keys: `modelKey`, `compactKey`, `callKey`; the attempt of a model request and of a compaction rises with each `run.resumed` and each failed request, that of a call with `call.settled` by `retry`.
 */
export interface Program<S, P extends PromptHead> {
  readonly name: string;
  /** Raised whenever `reduce` would fold the same entries to another state. */
  readonly version: number;
  initial(): S;
  reduce(state: S, entry: Entry): S;
  decide(state: S): Action<P>[];
  /** The calls that have begun, each with what it was begun for, null where its id says that: it must be the same for as long as the run goes on. Absent in a program whose calls mean what the journal says of them. */
  subjects?(state: S): Map<string, Json>;
  /** The summary in a model's reply to a `compact` action's prompt; undefined where it holds none that can be used. Absent in a program that never compacts. */
  summaryOf?(message: Json, finishReason: string): string | undefined;
  /** State as JSON for a checkpoint, and back. */
  save(state: S): Json;
  load(saved: Json): S;
}

export function modelKey(turn: number, attempt: number): string {
  return `m${turn}#${attempt}`;
}

export function compactKey(turn: number, attempt: number): string {
  return `c${turn}#${attempt}`;
}

export function callKey(call: string, attempt: number): string {
  return `${call}#${attempt}`;
}

export type { CallAnswer, Entry, EntryOf } from "../journal/entry.ts";
