/** The door of the running system. */
export type { RunningSystem, SystemOptions } from "./local_system.ts";
export { createSystem } from "./local_system.ts";
