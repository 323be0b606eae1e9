/** A workflow as a graph: of a manifest as it is, or of a run from its journal alone. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { GraphNode, GraphNodeState, GraphRequest, GraphView } from "../base/graph.ts";
import { shortRunId } from "../base/ids.ts";
import type { Storage } from "../base/storage.ts";
import { readRun } from "../journal/mod.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { wavesOf } from "../manifest/workflow/waves.ts";
import type { Workflow } from "../manifest/workflow/workflow.ts";
import { blueprintOf } from "../workflow/blueprint.ts";
import type { Progress } from "../workflow/progress.ts";
import { FitCache, isOver, type NodeView, surveyOf } from "../workflow/survey.ts";
import { initialState, reduce } from "../workflow/workflow_state.ts";
import type { AgentSource } from "./agent_source.ts";
import { NodeTimes } from "./node_times.ts";
import { validatorsOf } from "./program_of.ts";
import { rowOf } from "./report.ts";
import type { Runs } from "./runs.ts";
import { storedAgent } from "./stored_agent.ts";
import { storedRedactor } from "./stored_secrets.ts";

/** What graphs are read from. */
export interface GraphDeps {
  storage: Storage;
  runs: Runs;
  agents(): Promise<AgentSource>;
}

/** Rejects with NOT_FOUND or INVALID (exit 2): nothing is there, it has mistakes, or it is no workflow. */
export async function graphOf(deps: GraphDeps, request: GraphRequest): Promise<GraphView> {
  const runId = request.parameters === undefined
    ? await runNamed(deps.runs, request.of)
    : undefined;
  if (runId !== undefined) return await graphOfRun(deps, runId);
  const agents = await deps.agents();
  const agent = await agents.look(request.of, request.client, request.parameters);
  return viewOf(agent, workflowOf(agent));
}

/** A run is meant by a number, or by what can be a part of a run id and is one. */
async function runNamed(runs: Runs, reference: string): Promise<string | undefined> {
  if (/^\d+$/.test(reference)) return await runs.find(reference);
  if (!/^[0-9a-f-]{4,36}$/.test(reference)) return undefined;
  try {
    return await runs.find(reference);
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
}

function workflowOf({ manifest }: LoadedAgent, runId?: string): Workflow {
  if (manifest.workflow !== undefined) return manifest.workflow;
  const what = runId === undefined ? "is" : `of run ${shortRunId(runId)} is`;
  throw new SysError(
    "INVALID",
    `"${manifest.name}" ${what} an agent, and only workflows have nodes`,
    {
      exitCode: EXIT_USAGE,
    },
  );
}

function viewOf(
  { manifest: { name, description } }: Pick<LoadedAgent, "manifest">,
  workflow: Workflow,
): GraphView {
  const { values } = workflow;
  const parameters = workflow.parameters.map(({ name, fallback }) => [
    name,
    Object.hasOwn(values, name) ? values[name] ?? null : fallback ?? null,
  ]);
  return {
    name,
    description,
    max_parallel: workflow.maxParallel,
    parameters: Object.fromEntries(parameters),
    nodes: nodesOf(workflow),
  };
}

function nodesOf({ nodes }: Workflow): GraphNode[] {
  const waves = wavesOf(nodes);
  return nodes.map((
    { name, agent, after, regardless, when, forEach, retry, onFailure, output },
  ) => ({
    name,
    agent,
    depends_on: after,
    ...(regardless === undefined ? {} : { regardless }),
    wave: waves.get(name) ?? 1,
    ...(when === undefined ? {} : { when }),
    ...(forEach === undefined ? {} : {
      for_each: "list" in forEach ? `${forEach.list.length} items` : forEach.expression,
    }),
    ...(retry.attempts === 1 ? {} : { attempts_max: retry.attempts }),
    ...(onFailure === "continue" ? { on_failure: "continue" as const } : {}),
    ...(output === undefined ? {} : { has_output: true as const }),
  }));
}

async function graphOfRun({ storage, runs }: GraphDeps, runId: string): Promise<GraphView> {
  const folder = runs.folderOf(runId);
  const view = await runs.view(runId);
  const { spec } = view.ledger.state;
  const agent = spec === undefined ? undefined : await storedAgent(storage, folder, spec);
  if (agent === undefined) {
    throw new SysError("INVALID", "The stored manifest of the run can't be read", {
      device: runId,
    });
  }
  const workflow = workflowOf(agent, runId);
  const times = new NodeTimes();
  let state = initialState();
  await readRun(storage, folder, (entry) => {
    times.take(entry);
    state = reduce(state, entry);
  });
  const blueprint = blueprintOf(workflow, await validatorsOf(workflow));
  const { views } = surveyOf(blueprint, state, new FitCache());
  const redactor = await storedRedactor(storage, folder);
  const graph = viewOf(agent, workflow);
  const isLive = view.state === "running";
  const { pid, reason, exit_code, elapsed_ms } = rowOf(view, []);
  return {
    ...graph,
    run: {
      run_id: runId,
      pid,
      state: view.state,
      ...(reason === undefined ? {} : { reason }),
      ...(exit_code === undefined ? {} : { exit_code }),
      elapsed_ms,
    },
    nodes: graph.nodes.map((node, index) => {
      const found = views[index];
      if (found === undefined) return node;
      const told = found.reason === undefined ? {} : { reason: redactor.redact(found.reason) };
      return { ...node, ...progressOf(found, isLive), ...told, ...times.of(node.name) };
    }),
  };
}

function progressOf({ status, calls, node }: NodeView, isLive: boolean): Partial<GraphNode> {
  const count = (...steps: string[]) =>
    calls.filter(({ progress }) => steps.includes(progress.step)).length;
  const most = Math.max(0, ...calls.map(({ progress }) => triesOf(progress)));
  const hasTried = most > 0;
  const items = node.items === undefined || !hasTried ? {} : {
    items: {
      total: calls.length,
      completed: count("done"),
      failed: count("failed"),
      running: count("running", "waiting"),
    },
  };
  return {
    state: stateOf(status, isLive),
    ...(most > 1 ? { attempts: most } : {}),
    ...items,
  };
}

/** Tries that have begun. */
function triesOf({ step, attempt }: Progress): number {
  return step === "ready" || step === "waiting" ? attempt - 1 : attempt;
}

function stateOf(status: NodeView["status"], isLive: boolean): GraphNodeState {
  if (isOver(status)) return status === "completed" || status === "failed" ? status : "skipped";
  if (status !== "running") return "pending";
  return isLive ? "running" : "suspended";
}
