/** A home with a workflow and its agents, for tests of whole runs. */
import type { ResumeRequest, RunEvent, RunReport } from "../../src/base/operations.ts";
import type { ModelHome } from "./model_home.ts";
import { processes } from "./tree_stage.ts";

/** A report, with what was told on the way. */
export type Ended = RunReport & { events: RunEvent[] };

/** An agent beside the workflow that answers with its script. */
export function agent(home: ModelHome, name: string, turns: object[], more = ""): void {
  home.write(`${name}/script.yaml`, JSON.stringify({ turns, final: "Nothing more." }));
  home.write(
    `${name}/agent.yaml`,
    `name: ${name}\ninstructions: Do it.\nmodels: { provider: scripted, script: script.yaml }\n${more}`,
  );
}

/** One that says what it was told. */
export const echo = (home: ModelHome, name = "echo", more = {}) =>
  agent(home, name, [{ text: "<${{ intent }}>", ...more }]);

/** Writes the workflow; `nodes` are lines of YAML. */
export function workflow(home: ModelHome, nodes: string, head = "", file = "flow.yaml"): void {
  home.write(file, `kind: workflow\nname: flow\n${head}\nnodes:\n${nodes}`);
}

/** Runs the workflow to its end. */
export async function run(
  home: ModelHome,
  options: { parameters?: { [name: string]: string }; intent?: string; manifest?: string } = {},
): Promise<Ended> {
  const { parameters, intent = "", manifest = "./flow.yaml" } = options;
  const events: RunEvent[] = [];
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const more = parameters === undefined ? {} : { parameters };
  const handle = await home.system.run(
    { manifest, intent, trust: false, client, ...more },
    { onEvent: (event) => events.push(event) },
  );
  return { ...await handle.done, events };
}

/** Takes a run up, to its end. */
export async function resume(
  home: ModelHome,
  run: string,
  more: Partial<ResumeRequest> = {},
): Promise<Ended> {
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const off = { stored: false, acceptCut: false, fork: false, yes: false, trust: false };
  const events: RunEvent[] = [];
  const handle = await home.system.resume(
    { run, client, unknown: [], ...off, ...more },
    { onEvent: (event) => events.push(event) },
  );
  return { ...await handle.done, events };
}

/** Calls that were started, in order. */
export const starts = ({ events }: Ended) =>
  events.flatMap((event) => event.type === "call.started" ? [event.call] : []);

/** Most calls that were at work at once. */
export function mostAtOnce({ events }: Ended): number {
  let now = 0;
  let most = 0;
  for (const { type } of events) {
    if (type === "call.started") most = Math.max(most, ++now);
    if (type === "call.finished") now -= 1;
  }
  return most;
}

/** Whether a call of this process has been answered, and that is durable. */
export async function hasAnswer(home: ModelHome, pid: number): Promise<boolean> {
  const row = (await processes(home)).find((each) => each.pid === pid);
  if (row === undefined) return false;
  const events = await Array.fromAsync(home.system.pastEvents(row.run_id));
  return events.some(({ type }) => type === "call.finished");
}
