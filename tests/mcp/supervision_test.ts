/** Real servers that are killed, stopped or kept busy under a mount: what comes back by itself, what is never ended, and what is sent how often. */
import assert from "node:assert/strict";
import type { Json } from "../../src/base/json.ts";
import type { MountHealth, MountPhase } from "../../src/base/mount_health.ts";
import type { McpServerLaunch } from "../../src/mcp/launch.ts";
import { scripted } from "../servers/launch_server.ts";
import { answerOf, type BenchOptions, type MountBench, withBench } from "../servers/mount_bench.ts";
import type { Scenario, Step } from "../servers/scripted_scenario.ts";
import { removeFolder } from "../doubles/remove_folder.ts";

/** Far more than anything here takes on a loaded machine. */
const LIMIT_MS = 60_000;
const pings = { intervalMs: 400, timeoutMs: 2_500, misses: 1 };
const t: Json = { name: "t", inputSchema: { type: "object" } };

interface Stage {
  bench: MountBench;
  launch: McpServerLaunch;
  /** How often the server was started, and a tool called. */
  starts(): number;
  calls(): number;
}

function linesOf(file: string): number {
  try {
    return Deno.readTextFileSync(file).split("\n").length - 1;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return 0;
    throw thrown;
  }
}

/** A server with the tool `t`, which does `step`. */
async function staged(
  scenario: Scenario,
  step: Step,
  work: (stage: Stage) => Promise<void>,
  options: BenchOptions = {},
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const [starts, ledger] = [`${folder}/starts`, `${folder}/ledger`];
  try {
    await withBench(async (bench) => {
      const launch = scripted({
        ...scenario,
        tools: [t],
        starts,
        on: { ...scenario.on, "tools/call:t": { ledger, ...step } },
      }, { stderrLogPath: "/run/mounts/s.stderr.log" });
      await work({ bench, launch, starts: () => linesOf(starts), calls: () => linesOf(ledger) });
    }, options);
  } finally {
    await removeFolder(folder);
  }
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  while (!isSo()) {
    assert.ok(performance.now() < endMs, what);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const inPhase = (mount: { health: MountHealth }, phase: MountPhase) =>
  until(`it is ${phase}`, () => mount.health.state === phase);

async function signal(bench: MountBench, name: Deno.Signal): Promise<void> {
  const pids = await bench.left();
  assert.equal(pids.length, 1);
  for (const pid of pids) Deno.kill(pid, name);
}

Deno.test("a server killed between calls is back before the next, which is answered; each was made once", async () => {
  await staged({}, { text: "done" }, async ({ bench, launch, starts, calls }) => {
    const mount = await bench.mount(launch);
    assert.equal(answerOf(await bench.call(mount)), "done");
    await signal(bench, "SIGKILL");
    await until("it is started again by itself", () => starts() === 2);
    assert.equal(answerOf(await bench.call(mount)), "done");
    assert.deepEqual([starts(), calls()], [2, 2]);
    assert.deepEqual(bench.warnings, [
      'Server "s" was lost: it was ended by SIGKILL',
      'Server "s" is connected again',
    ]);
    await mount.close();
    const log = new TextDecoder().decode(await bench.disk.read("/run/mounts/s.stderr.log"));
    assert.deepEqual(log.match(/^\[rnix\] server .*$/gm), [
      "[rnix] server was lost: it was ended by SIGKILL",
      "[rnix] server is connected again",
    ]);
  });
});

Deno.test("a server killed during calls makes them unknown and not one of them is made again", async () => {
  await staged({}, { silent: true }, async ({ bench, launch, starts, calls }) => {
    const mount = await bench.mount(launch);
    const pending = [bench.call(mount), bench.call(mount)];
    await until("both are there", () => calls() === 2);
    await signal(bench, "SIGKILL");
    for (const outcome of await Promise.all(pending)) {
      assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
      assert.equal(await outcome.late, undefined);
    }
    await until("it is started again", () => starts() === 2);
    await inPhase(mount, "connected");
    assert.equal(calls(), 2);
    await mount.close();
  });
});

Deno.test("[B11] twenty calls on a dead server share one start", async () => {
  await staged({}, { text: "done" }, async ({ bench, launch, starts, calls }) => {
    const mount = await bench.mount(launch);
    await signal(bench, "SIGKILL");
    await until("its end is seen", () => mount.health.attempts > 0);
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => bench.call(mount)));
    assert.deepEqual(outcomes.map(answerOf), Array.from({ length: 20 }, () => "done"));
    assert.deepEqual([starts(), calls()], [2, 20]);
    await mount.close();
  });
});

Deno.test("[B71] a stopped server is found by its silence and replaced; the call goes to the new one alone", async () => {
  await staged({}, { text: "done" }, async ({ bench, launch, starts, calls }) => {
    const mount = await bench.mount(launch);
    await signal(bench, "SIGSTOP");
    await inPhase(mount, "suspect");
    assert.equal(answerOf(await bench.call(mount)), "done");
    assert.deepEqual([starts(), calls()], [2, 1]);
    assert.match(bench.warnings[0] ?? "", /^Server "s" was lost: it gave no sign of life for /);
    await mount.close();
  }, { ping: pings });
});

Deno.test("[B17] a server that is busy in a call for longer than all questions take is not ended", async () => {
  await staged({}, { blockMs: 7_000, text: "done" }, async ({ bench, launch, starts }) => {
    const mount = await bench.mount(launch);
    assert.equal(answerOf(await bench.call(mount)), "done");
    assert.deepEqual([starts(), bench.warnings], [1, []]);
    await mount.close();
  }, { ping: pings });
});

Deno.test("[B15] a server that drops ping stays mounted", async () => {
  const scenario = { on: { ping: { silent: true } } };
  await staged(scenario, { text: "done" }, async ({ bench, launch, starts }) => {
    const mount = await bench.mount(launch);
    const log = "/run/mounts/s.stderr.log";
    let text = "";
    const endMs = performance.now() + LIMIT_MS;
    while (!text.includes("doesn't answer ping")) {
      assert.ok(performance.now() < endMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
      text = new TextDecoder().decode(await bench.disk.read(log));
    }
    assert.equal(answerOf(await bench.call(mount)), "done");
    assert.deepEqual([starts(), bench.warnings], [1, []]);
    await mount.close();
  }, { ping: pings });
});

Deno.test("a mount whose server is killed while it is being closed leaves nothing", async () => {
  await staged({}, { text: "done" }, async ({ bench, launch }) => {
    const mount = await bench.mount(launch);
    await signal(bench, "SIGKILL");
    await until("its end is seen", () => mount.health.attempts > 0);
    await mount.close();
    assert.deepEqual([mount.health.state, await bench.left()], ["closed", []]);
  });
});
