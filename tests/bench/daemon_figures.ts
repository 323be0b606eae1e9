/**
 * Figures of the daemon, as a script (`deno run -A tests/bench/daemon_figures.ts`): time to the first model request on a warm and on no daemon, what daemon and follower add to a step, memory of runs that wait for their model, and a hundred runs at once against one after another.
 *
 * Runs are without mounts, on scripted models, so that only rnix is measured.
 */
import { disk } from "../../src/base/disk.ts";
import { readDaemonRecord } from "../../src/base/daemon_files.ts";
import type { RunEvent, RunRequest } from "../../src/base/operations.ts";
import { DaemonSocket } from "../../src/client/daemon_socket.ts";
import { DaemonClient } from "../../src/client/mod.ts";
import { createSystem } from "../../src/daemon/mod.ts";

const RNIX = new URL("../../scripts/rnix", import.meta.url).pathname;
const STEPS = 200;
const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-figures-" }));
const env = { ...Deno.env.toObject(), RNIX_HOME: `${folder}/home`, NO_COLOR: "1" };

function agent(name: string, script: string): void {
  Deno.mkdirSync(`${folder}/${name}`, { recursive: true });
  Deno.writeTextFileSync(`${folder}/${name}/script.yaml`, script);
  Deno.writeTextFileSync(
    `${folder}/${name}/agent.yaml`,
    `name: ${name}
instructions: x
models: { provider: scripted, script: script.yaml }
budget: { turns: 1000 }
`,
  );
}

agent("quick", "turns: [{ text: done }]\n");
agent("waits", "turns: [{ text: done, delay: 10m }]\n");
const step = "calls: [{ tool: none, offered: false, input: {} }]";
agent("steps", `turns: [{ repeat: ${STEPS}, ${step} }, { text: done }]\n`);
agent("fifty", `turns: [{ repeat: 50, ${step} }, { text: done }]\n`);

function request(name: string): RunRequest {
  return {
    manifest: `${folder}/${name}`,
    intent: "go",
    trust: false,
    client: { cwd: folder, env, interactive: false },
  };
}

async function rnix(...args: string[]): Promise<void> {
  await new Deno.Command(RNIX, { args, env, stdout: "null", stderr: "null" }).output();
}

/** Milliseconds from the start of the command to its first model request. */
async function toFirstRequest(): Promise<number> {
  const startMs = performance.timeOrigin + performance.now();
  const child = new Deno.Command(RNIX, {
    args: ["run", `${folder}/quick`, "--stream"],
    env,
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const { stdout } = await child.output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n").map((line) => JSON.parse(line));
  return lines.find(({ type }) => type === "model.started").ts - startMs;
}

async function client(): Promise<{ live: DaemonClient; osPid: number }> {
  const record = await readDaemonRecord(disk, `${folder}/home/state`);
  if (record === undefined) throw new Error("No daemon runs");
  return { live: new DaemonClient(new DaemonSocket(record.socket)), osPid: record.os_pid };
}

/** Milliseconds a step from the first model request to the end, by the run's own clock. */
async function perStep(run: (observer: { onEvent(event: RunEvent): void }) => Promise<void>) {
  let startMs = 0;
  let endMs = 0;
  await run({
    onEvent(event) {
      if (event.type === "model.started" && startMs === 0) startMs = event.ts;
      if (event.type === "run.exited") endMs = event.ts;
    },
  });
  return (endMs - startMs) / STEPS;
}

function memoryMb(osPid: number): number {
  const { stdout } = new Deno.Command("ps", { args: ["-o", "rss=", "-p", String(osPid)] })
    .outputSync();
  return Number(new TextDecoder().decode(stdout)) / 1024;
}

const median = (values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const shown = (value: number) => value.toFixed(value < 10 ? 2 : 0);

const cold: number[] = [];
const warm: number[] = [];
for (let round = 0; round < 5; round += 1) {
  await rnix("daemon", "stop");
  cold.push(await toFirstRequest());
  warm.push(await toFirstRequest());
}
console.log(
  `to the first model request: ${shown(median(cold))} ms on no daemon, ${
    shown(median(warm))
  } ms on a warm one`,
);

const { live, osPid } = await client();
const here = await createSystem({
  env: { ...env, RNIX_HOME: `${folder}/here` },
  uid: Deno.uid() ?? 0,
  osPid: Deno.pid,
});
const followed: number[] = [];
const alone: number[] = [];
for (let round = 0; round < 5; round += 1) {
  followed.push(await perStep(async (o) => void await (await live.run(request("steps"), o)).done));
  alone.push(
    await perStep(async (o) => void await (await here.system.run(request("steps"), o)).done),
  );
}
console.log(
  `a step: ${shown(median(followed))} ms followed through the daemon, ${
    shown(median(alone))
  } ms in one process`,
);

const oneMs = performance.now();
for (let run = 0; run < 10; run += 1) {
  await (await live.run(request("fifty"), { onEvent: () => {} })).done;
}
const serial = (performance.now() - oneMs) * 10;
const allMs = performance.now();
await Promise.all(
  Array.from(
    { length: 100 },
    async () => await (await live.run(request("fifty"), { onEvent: () => {} })).done,
  ),
);
console.log(
  `100 runs of 50 steps: ${shown(performance.now() - allMs)} ms at once, ${
    shown(serial)
  } ms one after another (ten measured)`,
);

const idle = memoryMb(osPid);
let waiting = 0;
for (const target of [100, 1000]) {
  const more = Array.from(
    { length: target - waiting },
    () => live.run({ ...request("waits"), detached: true }, { onEvent: () => {} }),
  );
  const handles = await Promise.all(more);
  waiting = target;
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const mb = memoryMb(osPid);
  console.log(
    `${target} runs that wait for their model: ${shown(mb)} MB, ${
      shown((mb - idle) * 1024 / target)
    } KB each`,
  );
  if (target === 1000) { for (const handle of handles) handle.suspend("paused"); }
}
await here.close();
await rnix("daemon", "stop");
Deno.removeSync(folder, { recursive: true });
Deno.exit(0);
