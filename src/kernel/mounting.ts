/**
 * Mounts all servers of a process at once, and unmounts them.
 *
 * Any required failure, or an abort, rolls back everything: when `mountAll` throws, nothing of it is left. A failure of a server that isn't required is only reported.
 * After a required failure the others have `FAILURE_GRACE_MS` to fail by themselves, so that who has two mistakes is told both; who has one waits no longer for a slow server.
 */
import type { Clock } from "../base/clock.ts";
import { type SysError, toSysError } from "../base/errors.ts";
import { EXIT_MOUNT } from "../base/exit.ts";
import type { Mount, MountDriver, MountFailure, MountSpec } from "./mount.ts";

/** How long others are waited for once a required server has failed, milliseconds. */
export const FAILURE_GRACE_MS = 500;

export interface Mounted {
  spec: MountSpec;
  mount: Mount;
  durationMs: number;
}

export interface MountAllOptions {
  pid: number;
  clock: Clock;
  signal: AbortSignal;
  onStart?: (server: string) => void;
}

export interface MountResult {
  mounted: Mounted[];
  failures: MountFailure[];
}

/** Rejects with nothing; a required failure is in `failures`, and then `mounted` is empty. */
export async function mountAll(
  driver: MountDriver,
  specs: readonly MountSpec[],
  options: MountAllOptions,
): Promise<MountResult> {
  const rollBack = new AbortController();
  const onAbort = () => rollBack.abort(options.signal.reason);
  if (options.signal.aborted) onAbort();
  options.signal.addEventListener("abort", onAbort, { once: true });
  const mounted: Mounted[] = [];
  const failures: MountFailure[] = [];
  let hasFailed = false;
  let cancelGrace = () => {};
  await Promise.all(specs.map(async (spec) => {
    options.onStart?.(spec.server);
    const startMs = options.clock.monotonic();
    try {
      const mount = await driver.mount(spec, { pid: options.pid, signal: rollBack.signal });
      const durationMs = Math.round(options.clock.monotonic() - startMs);
      mounted.push({ spec, mount, durationMs });
    } catch (thrown) {
      // What failed only because another one did is not a failure of its own.
      if (rollBack.signal.aborted) return;
      failures.push({
        server: spec.server,
        required: spec.required,
        error: mountError(spec, thrown),
      });
      if (!spec.required || hasFailed) return;
      hasFailed = true;
      cancelGrace = options.clock.after(FAILURE_GRACE_MS, () => rollBack.abort());
    }
  }));
  cancelGrace();
  options.signal.removeEventListener("abort", onAbort);
  if (!hasFailed && !rollBack.signal.aborted) {
    const order = specs.map((spec) => spec.server);
    mounted.sort((a, b) => order.indexOf(a.spec.server) - order.indexOf(b.spec.server));
    return { mounted, failures };
  }
  await unmountAll(mounted);
  return { mounted: [], failures };
}

/** Closes all at once; each close is bounded by its mount and never throws. */
export async function unmountAll(mounted: readonly Mounted[]): Promise<void> {
  await Promise.all(mounted.map(({ mount }) => mount.close()));
}

function mountError(spec: MountSpec, thrown: unknown): SysError {
  const error = toSysError(thrown);
  return error.with({
    syscall: error.syscall ?? "Mount",
    device: error.device ?? spec.server,
    exitCode: EXIT_MOUNT,
  });
}
