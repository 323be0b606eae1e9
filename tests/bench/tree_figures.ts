/**
 * Figures of trees, as a script (`deno run -A tests/bench/tree_figures.ts [children…]`): so many agents at work at once in one process, in two generations (each process has 16 children at once at most), on scripted models.
 *
 * Each size is measured in a process of its own. A worker makes ten steps, then waits until all are there. Told are: time until all had begun, and until the last of them had its steps done, in all and per child; memory per child when all are at work; `ps`; the end; what is on disk per child. `--budget`: with a limit on the tokens of the whole tree.
 */
import { createSystem } from "../../src/daemon/mod.ts";
import type { RunEvent } from "../../src/base/operations.ts";

const SIZES = ["25", "50", "100", "200", "240"];
const AT_ONCE = 16;
const STEPS = 10;
/** Longer than the steps of all take. */
const WAIT = "10m";
const LIMIT_MS = 60_000;

const sizes = Deno.args.filter((arg) => /^\d+$/.test(arg));
const hasBudget = Deno.args.includes("--budget");
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
        ...hasBudget ? ["--budget"] : [],
      ],
    }).spawn().status;
    if (code !== 0) Deno.exit(code);
  }
}

function write(folder: string, name: string, script: object, more = ""): void {
  Deno.mkdirSync(`${folder}/${name}`, { recursive: true });
  Deno.writeTextFileSync(`${folder}/${name}/script.yaml`, JSON.stringify(script));
  Deno.writeTextFileSync(
    `${folder}/${name}/agent.yaml`,
    `name: ${name}\ninstructions: x\nmodels: { provider: scripted, script: script.yaml }\nbudget: { turns: 1000 }\n${more}`,
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

async function measure(children: number): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-tree-" }));
  const counts = shape(children);
  const step = { calls: [{ tool: "none", offered: false, input: {} }] };
  write(folder, "worker", { turns: [{ repeat: STEPS, ...step }, { text: "done", delay: WAIT }] });
  const agents = (names: string[]) =>
    `agents: [${names.map((name) => `{ name: ${name}, manifest: ../${name} }`).join(", ")}]\n`;
  const names = counts.map((count, index) => {
    write(folder, `lead${index}`, starts("worker", count), agents(["worker"]));
    return `lead${index}`;
  });
  const calls = names.map((name) => ({ tool: `agent__${name}`, input: { intent: "Lead" } }));
  const limit = hasBudget
    ? "budget: { turns: 1000, tokens: 100000000, tool_calls: 1000000 }\n"
    : "";
  write(folder, "root", { turns: [{ calls }, { text: "done" }] }, agents(names));
  if (hasBudget) {
    const path = `${folder}/root/agent.yaml`;
    Deno.writeTextFileSync(
      path,
      Deno.readTextFileSync(path).replace("budget: { turns: 1000 }\n", limit),
    );
  }
  const env = { ...Deno.env.toObject(), RNIX_HOME: `${folder}/home` };
  const { system, close } = await createSystem({ env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
  const rss = () => Deno.memoryUsage().rss / 1e6;
  const client = { cwd: folder, env, interactive: false };
  const startRss = rss();
  const startMs = performance.now();
  const onEvent = (_: RunEvent) => {};
  const handle = await system.run(
    { manifest: `${folder}/root`, intent: "", trust: false, client },
    { onEvent },
  );
  let begunMs = 0;
  for (;;) {
    const rows = await system.processes({ all: false });
    if (begunMs === 0 && rows.length >= children + 1) begunMs = performance.now() - startMs;
    const workers = rows.filter(({ agent }) => agent === "worker");
    if (
      workers.length === children - counts.length && workers.every(({ turns }) => turns >= STEPS)
    ) break;
    if (performance.now() - startMs > LIMIT_MS) {
      console.error(`Only ${rows.length} of ${children + 1} came to work`);
      const runs = `${folder}/home/state/runs`;
      for (const { name } of Deno.readDirSync(runs)) {
        const journal = Deno.readTextFileSync(`${runs}/${name}/journal.jsonl`);
        for (const line of journal.split("\n").filter((line) => line.includes('"error"'))) {
          console.error(line.slice(0, 400));
        }
      }
      Deno.exit(1);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const stepsMs = performance.now() - startMs;
  const usedMb = rss() - startRss;
  const psStartMs = performance.now();
  await system.processes({ all: true });
  const psMs = performance.now() - psStartMs;
  const stopStartMs = performance.now();
  handle.kill("TERM");
  await handle.done;
  const stopMs = performance.now() - stopStartMs;
  const disk = sizeOf(`${folder}/home/state/runs`);
  await close();
  Deno.removeSync(folder, { recursive: true });
  const shown = (value: number, width: number, digits = 0) => value.toFixed(digits).padStart(width);
  console.log(
    shown(children, 8) + shown(begunMs, 10) + shown(stepsMs, 10) +
      shown(stepsMs / children, 10, 1) +
      shown(rss(), 8) + shown(usedMb / children, 10, 2) + shown(psMs, 7) + shown(stopMs, 9) +
      shown(disk / 1024 / children, 18, 1),
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
