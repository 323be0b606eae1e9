/** `suspect`: silent for long, and asked whether it lives. `waiting`: lost; started again when its time comes, or on its next use. */
export type MountPhase =
  | "connecting"
  | "connected"
  | "suspect"
  | "reconnecting"
  | "waiting"
  | "closed";

/** How a mount's connection fares; for those who look, the journal never has it. */
export interface MountHealth {
  state: MountPhase;
  /** Since when, milliseconds since 1970. */
  sinceMs: number;
  /** Starts since the server was last healthy, the first one aside. */
  attempts: number;
  /** Why it was lost or couldn't be started the last time. */
  lastError: string | undefined;
}

/** Health of what is mounted, by mount (`{pid}-{server}`): what the daemon tells of its runs. */
export interface HealthRow {
  mount: string;
  state: MountPhase;
  since_ms: number;
  attempts: number;
  last_error?: string;
}
