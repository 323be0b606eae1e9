/** Mounts by the real driver under a real guard, and calls on them, for tests that must leave no process behind. */
import assert from "node:assert/strict";
import { systemClock } from "../../src/base/clock.ts";
import { type Guard, startGuard } from "../../src/base/guard.ts";
import type { Json } from "../../src/base/json.ts";
import { type McpDriverDeps, McpMountDriver } from "../../src/devices/mcp/mcp_driver.ts";
import type { Mount } from "../../src/kernel/mount.ts";
import type { McpServerLaunch } from "../../src/mcp/launch.ts";
import type { CallOptions, DeviceOutcome } from "../../src/vfs/device.ts";
import { FaultyDisk } from "../doubles/faulty_disk.ts";
import { patientClock } from "../doubles/patient_clock.ts";
import { markedProcesses, noneMarked } from "./marked_processes.ts";

const never = new AbortController().signal;

export type BenchOptions = Partial<Pick<McpDriverDeps, "ping" | "eras">>;

export class MountBench {
  readonly guard: Guard;
  readonly disk = new FaultyDisk();
  readonly warnings: string[] = [];
  readonly driver: McpMountDriver;
  #calls = 0;

  constructor(guard: Guard, options: BenchOptions = {}) {
    this.guard = guard;
    this.driver = new McpMountDriver({
      ...options,
      clock: systemClock,
      keeper: () => Promise.resolve(guard),
      storage: this.disk,
      clientInfo: { name: "rnix", version: "0" },
      onWarning: (_, message) => this.warnings.push(message),
    });
  }

  /** Each has a server of its own. */
  mount(launch: McpServerLaunch, signal = never): Promise<Mount> {
    const config = { ...launch, share: false as const };
    return this.driver.mount({
      server: config.server,
      required: true,
      rules: { effects: {}, risk: {}, sensitive: [] },
      outputTokensMax: undefined,
      config,
    }, { pid: 1, signal });
  }

  /** One call, whatever comes of it. */
  call(
    mount: Mount,
    tool = "t",
    input: Json = {},
    more: Partial<CallOptions> = {},
  ): Promise<DeviceOutcome> {
    const callId = `t1.${this.#calls++}`;
    return mount.open(`tools/${tool}`).write(input, {
      signal: never,
      cancelGraceMs: 1_000,
      callId,
      idempotencyKey: `run/${callId}`,
      ...more,
    });
  }

  /** Processes that carry the guard's mark. */
  left(): Promise<number[]> {
    return markedProcesses(this.guard.instance);
  }
}

/** Runs `work` with a guard of its own and checks that it leaves no process. */
export async function withBench(
  work: (bench: MountBench) => Promise<void>,
  options: BenchOptions = {},
): Promise<void> {
  const guard = await startGuard({
    instance: `test-${crypto.randomUUID()}`,
    clock: patientClock,
  });
  const bench = new MountBench(guard, options);
  try {
    await work(bench);
    await noneMarked(guard.instance);
  } finally {
    await guard.close();
  }
}

/** The text of an answer that is no error. */
export function answerOf(outcome: DeviceOutcome): string {
  assert.ok(outcome.kind === "answer" && !outcome.isError, JSON.stringify(outcome));
  return textOf(outcome.content);
}

/** The text of the text blocks. */
export function textOf(content: readonly Json[]): string {
  return content.map((block) =>
    typeof block === "object" && block !== null && !Array.isArray(block) ? block["text"] : undefined
  ).filter((text) => typeof text === "string").join("\n");
}
