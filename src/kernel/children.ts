/**
 * Children as the kernel sees them: a call whose device is another run.
 *
 * Invariants
 * 1. A child's run id is in the intent of its call, durable before the child is made; making it is create-if-absent. So a crash never makes it twice.
 * 2. A child's outcome is never unknown: what it came to stands in its own journal. A missing `child.exited` is read from there.
 * 3. A suspended child hasn't exited: its call stays open, and its parent goes on with other work. When only such children are left, the parent is suspended for their reasons; taking the parent up takes them up.
 * 4. A child that ended without success is taken up again where its program says so (`continues`), by a call of its own: what it did stays done. Which end is the old one is told by the pid.
 * 5. Whatever ends or suspends a parent does the same to its children before the parent's own end is written; only detached ones are left alone.
 * 6. What a child uses counts for all above it: while it lives by what it says, then by `child.exited`.
 */
import { type Budget, NO_TOTALS, type Totals } from "../base/budget.ts";
import type { SysError } from "../base/errors.ts";
import type { SuspendReason } from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { LimitHit } from "../policy/limits.ts";
import type { DeviceOutcome } from "../vfs/device.ts";
import type { Stop } from "./endings.ts";

/** What a tool that is a child agent stands for. */
export interface ChildBinding {
  /** Name of the agent, as the parent's manifest has it. */
  agent: string;
  /** It goes on by itself: the call is over once the child is there. */
  detach: boolean;
}

export interface ChildRequest {
  runId: string;
  child: ChildBinding;
  call: string;
  input: Json;
  /** It was at work before: where nothing is left of it, it isn't made anew. */
  wasSpawned: boolean;
  /** The end of this process isn't what the call is to come to: the child is taken up after it. */
  continues?: number;
}

type Answer = Extract<DeviceOutcome, { kind: "answer" }>;

export type ChildOutcome =
  | {
    kind: "exited";
    status: "completed" | "failed" | "killed";
    totals: Totals;
    /** The process that came to this end. */
    pid: number;
    answer: Answer;
  }
  /** Its call stays open. */
  | { kind: "suspended"; reason: SuspendReason; error: SysError }
  /** It goes on without its parent. */
  | { kind: "detached"; answer: Answer }
  /** It isn't there and can't be made (an agent that is gone, a limit on depth): a known failure. */
  | { kind: "refused"; error: SysError };

/** The parent as its children's side sees it. */
export interface ParentView {
  runId: string;
  pid: number;
  budget(): Budget;
  /** What it and those below it have used so far. */
  totals(): Totals;
}

/** The children of one process. Must not throw. */
export interface ChildPort {
  /** Called once, before anything else. */
  bind(parent: ParentView): void;
  /** An id for a child that is to be made. */
  newRunId(): string;
  /** Makes the child if it isn't there, takes it up if it hasn't ended, and stays until it is over or suspended; reads its end if it has one. `onStarted` is told the pid once, where it is at work. */
  run(
    request: ChildRequest,
    options: { signal: AbortSignal; onStarted: (pid: number) => void },
  ): Promise<ChildOutcome>;
  /** What stops the parent stops the children. May be said again: a kill goes before a suspension, which stays as it was first. */
  stop(stop: Stop): void;
  /** What children at work have used so far. */
  liveTotals(): Totals;
  /** The limit of a process above this one that forbids another request or call now. */
  limitAbove(kind: "model" | "call"): LimitHit | undefined;
}

/** For a process that may have none. */
export const NO_CHILDREN: ChildPort = {
  bind: () => {},
  newRunId: () => "",
  run: () => Promise.reject(new Error("This process may have no children")),
  stop: () => {},
  liveTotals: () => NO_TOTALS,
  limitAbove: () => undefined,
};
