/** The door of the client: finding, starting and speaking to the daemon. */
export { connectDaemon, reachDaemon, stopDaemon } from "./connect.ts";
export type { ConnectOptions, DaemonConnection } from "./find_daemon.ts";
export { findDaemon } from "./find_daemon.ts";
export { daemonStatus, endDaemon, runUnmarked, startDaemon } from "./daemon_control.ts";
export { DaemonClient } from "./daemon_client.ts";
export { SplitSystem } from "./split_system.ts";
