/** The door of the running system. */
export type { RunningSystem, SystemOptions } from "./system.ts";
export { createSystem } from "./system.ts";
