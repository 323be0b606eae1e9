/**
 * One use of the VFS over the daemon's socket.
 *
 * Giving up closes the connection, which tells the daemon to cancel what is under way. A daemon that is lost in the middle of a write leaves its outcome unknown: that is said, and nothing is repeated.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import type { VfsAnswer, VfsRequest } from "../base/vfs_operations.ts";
import type { VfsLine } from "../base/wire.ts";
import { type DaemonSocket, errorOf } from "./daemon_socket.ts";
import { Silence, SILENCE_LIMITS, type SilenceLimits } from "./silence.ts";

export interface VfsClientFacts {
  clock: Clock;
  silence?: SilenceLimits | undefined;
  signal?: AbortSignal | undefined;
}

/** Rejects with the daemon's error; DEVICE_DISCONNECTED or TIMEOUT (exit 8) where it was lost; the signal's reason when that aborts. */
export async function useVfs(
  socket: DaemonSocket,
  request: VfsRequest,
  { clock, silence: limits = SILENCE_LIMITS, signal }: VfsClientFacts,
): Promise<VfsAnswer> {
  const gaveUp = new AbortController();
  const silence = new Silence(clock, limits, {
    silent: () => {},
    back: () => {},
    lost: (seconds) =>
      gaveUp.abort(lost(request, "TIMEOUT", `The daemon has said nothing for ${seconds} s`)),
  });
  const either = signal === undefined ? gaveUp.signal : AbortSignal.any([gaveUp.signal, signal]);
  try {
    for await (const line of socket.lines<VfsLine>("vfs", request, either)) {
      silence.heard();
      if (line.line === "answer") return line.answer;
      if (line.line === "error") throw errorOf(line);
    }
    throw lost(request, "DEVICE_DISCONNECTED", "The daemon was lost in the middle of it");
  } catch (thrown) {
    const isLost = thrown instanceof SysError && thrown.code === "DEVICE_DISCONNECTED" &&
      thrown.exitCode === EXIT_UNREACHABLE;
    throw isLost ? lost(request, "DEVICE_DISCONNECTED", thrown.message) : thrown;
  } finally {
    silence.close();
  }
}

function lost(
  { operation, path }: VfsRequest,
  code: "TIMEOUT" | "DEVICE_DISCONNECTED",
  message: string,
): SysError {
  return new SysError(code, message, {
    device: path,
    exitCode: EXIT_UNREACHABLE,
    hint: operation === "write"
      ? "It isn't known whether the write took effect: check before you write it again"
      : "rnix daemon status tells about it",
  });
}
