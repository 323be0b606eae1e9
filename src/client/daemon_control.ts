/** Starting, asking and ending the daemon of a state folder. */
import type { DaemonStatus } from "../base/wire.ts";
import { awaitStopping, connectDaemon, stopDaemon } from "./connect.ts";
import { daemonEnvironment } from "./daemon_environment.ts";
import { type ConnectOptions, findDaemon, stoppingError } from "./find_daemon.ts";

/** What runs now; undefined when nothing does. Rejects (exit 8) for one that doesn't answer, or is on its way out. */
export async function daemonStatus(options: ConnectOptions): Promise<DaemonStatus | undefined> {
  const found = await findDaemon(options);
  found?.socket.close();
  const stopping = found === undefined ? await stoppingError(options) : undefined;
  if (stopping !== undefined) throw stopping;
  return found?.status;
}

/** Starts it if need be. Rejects with exit code 8. */
export async function startDaemon(options: ConnectOptions): Promise<DaemonStatus> {
  const { socket, status } = await connectDaemon(options);
  socket.close();
  return status;
}

/** Ends it, or waits for one that ends already; undefined when none ran. `runs` were at work when this one asked it to end. Rejects with TIMEOUT (exit 8) when it doesn't go. */
export async function endDaemon(options: ConnectOptions): Promise<{ runs: number } | undefined> {
  const found = await findDaemon(options);
  if (found === undefined) return await awaitStopping(options) ? { runs: 0 } : undefined;
  await stopDaemon(found, options);
  return { runs: found.status.runs };
}

/**
 * Runs `daemon run` again without the mark of the instance that this process was started by, and stays with it to its end: a daemon under a mark would be swept with that instance, and a variable can't be taken off a running process.
 * Gives its exit code.
 */
export async function runUnmarked(options: ConnectOptions): Promise<number> {
  const [program = "", ...args] = options.self;
  const child = new Deno.Command(program, {
    args: [...args, "daemon", "run"],
    clearEnv: true,
    env: daemonEnvironment(options.env),
    stdin: "null",
  }).spawn();
  return (await child.status).code;
}
