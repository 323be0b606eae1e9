/**
 * Writes the golden runs into this folder: `deno run --allow-read --allow-env --allow-write make_golden.ts NAME`. Each is named after the format's version and never written again, so that every later version is held to what this one wrote.
 *
 * The runs are real ones: kernel, agent and journal on a disk in memory, a clock that stands still, servers and a model that do as told.
 */
import { loadAgentFile } from "../../src/manifest/load_agent.ts";
import { saveSpec } from "../../src/manifest/spec.ts";
import { FaultyDisk } from "../doubles/faulty_disk.ts";
import { KernelStage, ServerDouble } from "../kernel/kernel_stage.ts";
import { ok, taking } from "../kernel/server_double.ts";

const RUNS_FOLDER = "/state/runs";
const LONG = "A result that is kept in a blob. ".repeat(2_100);
const MANIFEST = `name: tester
instructions: Do what you are asked to do.
models: {provider: scripted, script: script.yaml}
mcp: {servers: {world: {command: world, env: {TOKEN: "\${WORLD_TOKEN:-none}"}}}}
`;

async function specOf() {
  const disk = new FaultyDisk();
  await disk.makeFolder("/project", 0o700);
  for (const [name, text] of [["agent.yaml", MANIFEST], ["script.yaml", "turns: []\n"]] as const) {
    const file = await disk.open(`/project/${name}`, { create: true });
    file.append(new TextEncoder().encode(text));
    file.close();
  }
  return saveSpec(await loadAgentFile(disk, "/project/agent.yaml"));
}

async function stage(replies: ConstructorParameters<typeof KernelStage>[0]): Promise<KernelStage> {
  const slow = taking(1_000);
  const server = new ServerDouble({
    tools: {
      look: { effect: "read", does: () => ok(LONG) },
      pay: { does: () => ok("paid") },
      pay_slowly: { does: slow },
    },
  });
  return new KernelStage({ servers: [server], spec: await specOf(), ...replies });
}

/** A run with a read and a write, that completed. */
async function completed(): Promise<[KernelStage, string]> {
  const made = await stage({
    intent: "Look and pay",
    replies: [[{ tool: "world__look" }, { tool: "world__pay" }], "All is paid."],
  });
  return [made, (await made.run()).runId];
}

/** A run that died in the middle of a call, was resumed, and waits for a decision. */
async function undecided(): Promise<[KernelStage, string]> {
  const made = await stage({ replies: [[{ tool: "world__pay_slowly" }], "Done."] });
  const { runId } = await made.start();
  await made.clock.advance(100);
  made.kill();
  await made.resumeToEnd(runId);
  return [made, runId];
}

/** A run whose last reply was damaged, and that went on by an accepted cut. */
async function cut(): Promise<[KernelStage, string]> {
  const made = await stage({
    onUnknown: "skip",
    replies: [[{ tool: "world__pay_slowly" }], [{ tool: "world__pay" }], "Done."],
  });
  const { runId } = await made.start();
  await made.clock.advance(100);
  made.kill();
  const path = `${RUNS_FOLDER}/${runId}/journal.jsonl`;
  const at = new TextDecoder().decode(made.disk.peek(path)).lastIndexOf('"type":"model.reply"');
  made.disk.flipBit(path, at + 9, 1);
  await made.resumeToEnd(runId, { acceptCut: true });
  return [made, runId];
}

const MAKERS: { [name: string]: () => Promise<[KernelStage, string]> } = {
  "v1-completed": completed,
  "v1-undecided": undecided,
  "v1-cut": cut,
};

/** Makes such a run with the journal of today: its disk and its id. */
export async function makeRun(name: string): Promise<{ disk: FaultyDisk; runId: string }> {
  const make = MAKERS[name];
  if (make === undefined) throw new Error(`One of: ${Object.keys(MAKERS).join(", ")}`);
  const [{ disk }, runId] = await make();
  return { disk, runId };
}

async function copy(disk: FaultyDisk, from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for (const entry of await disk.list(from)) {
    if (entry === "lock") continue;
    const facts = await disk.stat(`${from}/${entry}`);
    if (facts?.kind === "folder") await copy(disk, `${from}/${entry}`, `${to}/${entry}`);
    else await Deno.writeFile(`${to}/${entry}`, await disk.read(`${from}/${entry}`));
  }
}

if (import.meta.main) {
  const [name = ""] = Deno.args;
  const { disk, runId } = await makeRun(name);
  await copy(disk, `${RUNS_FOLDER}/${runId}`, `${import.meta.dirname}/${name}/${runId}`);
}
