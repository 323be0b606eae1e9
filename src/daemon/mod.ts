/** The door of the running system. */
export type { DaemonOptions } from "./daemon.ts";
export { runDaemon } from "./daemon.ts";
export type { RunningSystem, SystemOptions } from "./local_system.ts";
export { createSystem } from "./local_system.ts";
