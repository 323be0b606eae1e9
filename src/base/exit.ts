/** The exit-code contract of `run`, `resume`, `attach` and `wait` (design, section 7). */

/** Why a run is suspended, most important first: of several reasons at once the first one is told. */
export const SUSPEND_REASONS = [
  "journal",
  "interrupted",
  "shutdown",
  "detached",
  "paused",
  "unknown-outcome",
  "approval",
  "limit",
  "mount",
  "model",
] as const;

export type SuspendReason = (typeof SUSPEND_REASONS)[number];

export const EXIT_COMPLETED = 0;
export const EXIT_FAILED = 1;
/** Usage, an invalid manifest, no such run. */
export const EXIT_USAGE = 2;
/** A required mount failed, or a pinned tool changed. */
export const EXIT_MOUNT = 3;
export const EXIT_UNREACHABLE = 8;

const SUSPEND_EXITS: Record<SuspendReason, number> = {
  approval: 4,
  "unknown-outcome": 5,
  limit: 6,
  journal: 7,
  mount: EXIT_MOUNT,
  interrupted: 9,
  shutdown: 9,
  detached: 9,
  paused: 9,
  model: 9,
};

/** Signals that end a run, with their POSIX numbers. */
export const SIGNAL_NUMBERS = { HUP: 1, INT: 2, KILL: 9, TERM: 15 } as const;

export type EndSignal = keyof typeof SIGNAL_NUMBERS;

export function exitOfSuspend(reason: SuspendReason): number {
  return SUSPEND_EXITS[reason];
}

export function exitOfSignal(signal: EndSignal): number {
  return 128 + SIGNAL_NUMBERS[signal];
}

/** The reason that is told when several hold. The list must not be empty. */
export function mostImportant(reasons: readonly SuspendReason[]): SuspendReason {
  return SUSPEND_REASONS.find((reason) => reasons.includes(reason)) ?? "interrupted";
}
