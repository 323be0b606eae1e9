/**
 * Figures of trees, as a script (`deno run -A tests/bench/tree_figures.ts [children…]`): so many agents at work at once in one process, in two generations (each process has 16 children at once at most), on scripted models.
 *
 * Each size is measured in a process of its own. A worker makes ten steps, then waits until all are there. Told are: time until all had begun, and until the last of them had its steps done, in all and per child; memory per child when all are at work; `ps`; the end; what is on disk per child. `--budget`: with a limit on the tokens of the whole tree. `--mount`: every worker has the ledger server, which they share.
 */
import { createSystem } from "../../src/daemon/mod.ts";
import type { LiveSystem, Reader } from "../../src/base/operations.ts";
import { ledgerMount } from "../system/model_home.ts";

const SIZES = ["25", "50", "100", "200", "240"];
const AT_ONCE = 16;
const STEPS = 10;
/** Longer than the steps of all take. */
const WAIT = "10m";
const LIMIT_MS = 60_000;

const sizes = Deno.args.filter((arg) => /^\d+$/.test(arg));
const hasBudget = Deno.args.includes("--budget");
const hasMount = Deno.args.includes("--mount");
if (Deno.args.includes("--one")) await measure(Number(sizes[0]));
else {
  console.log(
    "children  begun ms  steps ms  ms/child  rss MB  MB/child  ps ms  stop ms  KB on disk/child",
  );
  for (const size of sizes.length > 0 ? sizes : SIZES) {
    const { code } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        import.meta.filename ?? "",
        "--one",
        size,
        ...Deno.args.filter((arg) => arg.startsWith("--")),
      ],
    }).spawn().status;
    if (code !== 0) Deno.exit(code);
  }
}

function write(folder: string, name: string, script: object, more = "", limit = ""): void {
  Deno.mkdirSync(`${folder}/${name}`, { recursive: true });
  Deno.writeTextFileSync(`${folder}/${name}/script.yaml`, JSON.stringify(script));
  Deno.writeTextFileSync(
    `${folder}/${name}/agent.yaml`,
    `name: ${name}\ninstructions: x\nmodels: { provider: scripted, script: script.yaml }\nbudget: { turns: 1000${limit} }\n${more}`,
  );
}

function starts(agent: string, count: number): object {
  const call = { tool: `agent__${agent}`, input: { intent: "Work" } };
  return { turns: [{ calls: Array.from({ length: count }, () => call) }, { text: "done" }] };
}

/** How many children each lead starts: as even as can be. */
function shape(children: number): number[] {
  const leads = Math.min(AT_ONCE, Math.max(1, Math.ceil(children / AT_ONCE)));
  const workers = children - leads;
  return Array.from({ length: leads }, (_, index) => Math.floor((workers + index) / leads));
}

/** Writes the agents of a tree of so many. */
function writeTree(folder: string, counts: readonly number[]): void {
  const agents = (names: readonly string[]) =>
    `agents: [${names.map((name) => `{ name: ${name}, manifest: ../${name} }`).join(", ")}]\n`;
  const step = { calls: [{ tool: "none", offered: false, input: {} }] };
  const turns = [{ repeat: STEPS, ...step }, { text: "done", delay: WAIT }];
  write(folder, "worker", { turns }, hasMount ? ledgerMount(folder) : "");
  const names = counts.map((count, index) => {
    write(folder, `lead${index}`, starts("worker", count), agents(["worker"]));
    return `lead${index}`;
  });
  const calls = names.map((name) => ({ tool: `agent__${name}`, input: { intent: "Lead" } }));
  const limit = hasBudget ? ", tokens: 100000000, tool_calls: 1000000" : "";
  write(folder, "root", { turns: [{ calls }, { text: "done" }] }, agents(names), limit);
}

/** Waits until all have begun, and all workers have made their steps; when that was. */
async function allAtWork(
  system: LiveSystem & Reader,
  counts: readonly number[],
): Promise<{ begunMs: number; stepsMs: number }> {
  const startMs = performance.now();
  const workers = counts.reduce((sum, count) => sum + count, 0);
  const all = workers + counts.length + 1;
  for (let begunMs = 0;;) {
    const rows = await system.processes({ all: false });
    const nowMs = performance.now() - startMs;
    if (begunMs === 0 && rows.length >= all) begunMs = nowMs;
    const ready = rows.filter(({ agent, turns }) => agent === "worker" && turns >= STEPS);
    if (ready.length === workers) return { begunMs, stepsMs: nowMs };
    if (nowMs > LIMIT_MS) throw new Error(`Only ${rows.length} of ${all} came to work`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function measure(children: number): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-tree-" }));
  const counts = shape(children);
  writeTree(folder, counts);
  const env = { ...Deno.env.toObject(), RNIX_HOME: `${folder}/home` };
  const { system, close } = await createSystem({ env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
  const rss = () => Deno.memoryUsage().rss / 1e6;
  const timed = async (work: () => Promise<unknown>) => {
    const startMs = performance.now();
    await work();
    return performance.now() - startMs;
  };
  const startRss = rss();
  const client = { cwd: folder, env, interactive: false };
  const request = { manifest: `${folder}/root`, intent: "", trust: false, client };
  const handle = await system.run(request, { onEvent: () => {} });
  const { begunMs, stepsMs } = await allAtWork(system, counts);
  const usedMb = rss() - startRss;
  const psMs = await timed(() => system.processes({ all: true }));
  const stopMs = await timed(async () => {
    handle.kill("TERM");
    await handle.done;
  });
  const disk = sizeOf(`${folder}/home/state/runs`);
  await close();
  Deno.removeSync(folder, { recursive: true });
  const shown = (value: number, width: number, digits = 0) => value.toFixed(digits).padStart(width);
  console.log(
    shown(children, 8) + shown(begunMs, 10) + shown(stepsMs, 10) +
      shown(stepsMs / children, 10, 1) + shown(rss(), 8) + shown(usedMb / children, 10, 2) +
      shown(psMs, 7) + shown(stopMs, 9) + shown(disk / 1024 / children, 18, 1),
  );
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = `${folder}/${name}`;
    bytes += isDirectory ? sizeOf(path) : Deno.statSync(path).size;
  }
  return bytes;
}
