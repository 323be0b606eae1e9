/** The door of the client: finding, starting and speaking to the daemon. */
export type { ConnectOptions, DaemonConnection } from "./connect.ts";
export { connectDaemon, findDaemon, stopDaemon } from "./connect.ts";
export { daemonStatus, endDaemon, runUnmarked, startDaemon } from "./daemon_control.ts";
export { DaemonClient } from "./daemon_client.ts";
export { SplitSystem } from "./split_system.ts";
