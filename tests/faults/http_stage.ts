/** A scripted HTTP server in the test's own process, and mounts of it by the real driver. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { Mount } from "../../src/kernel/mount.ts";
import type { HttpLaunch } from "../../src/mcp/launch.ts";
import type { DeviceOutcome } from "../../src/vfs/device.ts";
import { addressed } from "../servers/launch_server.ts";
import { type BenchOptions, type MountBench, withBench } from "../servers/mount_bench.ts";
import { ScriptedHttpServer } from "../servers/scripted_http_server.ts";
import type { Scenario, Step } from "../servers/scripted_scenario.ts";
import { ONE_TOOL } from "./fault_scene.ts";

export interface Stage {
  bench: MountBench;
  server: ScriptedHttpServer;
  launch(changes?: Partial<HttpLaunch>): HttpLaunch;
  mounted(work: (mount: Mount) => Promise<void>, changes?: Partial<HttpLaunch>): Promise<void>;
}

/** Defines a test with a server that plays `scenario`; nothing of either is left. */
export function overHttp(
  name: string,
  scenario: Scenario,
  work: (stage: Stage) => Promise<void>,
  options: BenchOptions = {},
): void {
  Deno.test(name, async () => {
    const server = await ScriptedHttpServer.start({ tools: ONE_TOOL, ...scenario });
    try {
      await withBench(async (bench) => {
        const launch = (changes: Partial<HttpLaunch> = {}) => addressed(server.url, changes);
        const mounted: Stage["mounted"] = async (inside, changes) => {
          const mount = await bench.mount(launch(changes));
          try {
            await inside(mount);
          } finally {
            await mount.close();
          }
        };
        await work({ bench, server, launch, mounted });
      }, options);
    } finally {
      await server.stop();
    }
  });
}

/** A scenario in which calls do this. */
export const calling = (step: Step): Scenario => ({ on: { "tools/call": step } });

/** An outcome that must be unknown. */
export function unknownOf(outcome: DeviceOutcome) {
  assert.ok(outcome.kind === "unknown", JSON.stringify(outcome));
  return outcome;
}

/** What work fails with. */
export async function failure(work: Promise<unknown>): Promise<SysError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SysError, String(thrown));
  return thrown;
}
