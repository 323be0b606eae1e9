/** Starting, asking and ending the daemon of a state folder. */
import type { DaemonStatus } from "../base/wire.ts";
import { connectDaemon, type ConnectOptions, findDaemon, stopDaemon } from "./connect.ts";

/** What runs now; undefined when nothing does. */
export async function daemonStatus(options: ConnectOptions): Promise<DaemonStatus | undefined> {
  const found = await findDaemon(options);
  found?.socket.close();
  return found?.status;
}

/** Starts it if need be. Rejects with exit code 8. */
export async function startDaemon(options: ConnectOptions): Promise<DaemonStatus> {
  const { socket, status } = await connectDaemon(options);
  socket.close();
  return status;
}

/** Ends it; false when none ran. Rejects with TIMEOUT (exit 8) when it doesn't go. */
export async function endDaemon(options: ConnectOptions): Promise<boolean> {
  const found = await findDaemon(options);
  if (found === undefined) return false;
  await stopDaemon(found, options);
  return true;
}
