/**
 * The workflow: starts every node whose dependencies are over, at most so many at once, until all are over.
 *
 * Invariants
 * 1. A node's call is given only when all that it waits for is over; calls at work are always given, so that the kernel takes unfinished ones up again.
 * 2. Of what may begin, the order of the file decides, then the order of the items; never more than `max_parallel` are at work. Pauses between tries hold no place.
 * 3. Once a node with `on_failure: stop` has failed nothing new begins; what is at work is awaited, then the run fails.
 * 4. Every failure of a node is a result in the journal, one that can't even be begun included: its call is refused with why.
 */
import type { Json } from "../base/json.ts";
import type { Action, Program, PromptHead } from "../kernel/program.ts";
import { callKey } from "../kernel/program.ts";
import { agentToolName } from "../base/builtin_tools.ts";
import { EvaluationError, fillIn, type Scope } from "../manifest/workflow/evaluate.ts";
import type { Workflow } from "../manifest/workflow/workflow.ts";
import type { Validate } from "./answer.ts";
import { type Blueprint, blueprintOf } from "./blueprint.ts";
import {
  type CallView,
  FitCache,
  inputOf,
  isOver,
  type NodeView,
  type Survey,
  surveyOf,
} from "./survey.ts";
import { WORKFLOW_PROGRAM } from "./program_name.ts";
import { initialState, reduce, WORKFLOW_VERSION, type WorkflowState } from "./workflow_state.ts";

const REASON_CHARS_MAX = 300;

type CallAction<P extends PromptHead> = Extract<Action<P>, { kind: "call" }>;
type Exit = Extract<Action<PromptHead>, { kind: "exit" }>;

/** Makes the program of a workflow. `validators`: what holds a node's answer against its schema, by node. */
export function workflowProgram<P extends PromptHead>(
  workflow: Workflow,
  validators: ReadonlyMap<string, Validate> = new Map(),
): Program<WorkflowState, P> {
  const blueprint = blueprintOf(workflow, validators);
  const fits = new FitCache();
  return {
    name: WORKFLOW_PROGRAM,
    version: WORKFLOW_VERSION,
    initial: initialState,
    reduce,
    decide: (state) => decide<P>(blueprint, state, fits),
    subjects: (state) => subjectsBegun(surveyOf(blueprint, state, fits), state),
    save: (state) => state as unknown as Json,
    load: (saved) => saved as unknown as WorkflowState,
  };
}

function decide<P extends PromptHead>(
  blueprint: Blueprint,
  state: WorkflowState,
  fits: FitCache,
): Action<P>[] {
  if (!state.started) return [];
  const survey = surveyOf(blueprint, state, fits);
  const { views, scope } = survey;
  const all = views.flatMap((view) => view.calls.map((call) => ({ view, call })));
  const running = all.filter(({ call }) => call.progress.step === "running");
  const stopped = stoppedBy(views);
  const actions = running.map(({ view, call }) => callAction<P>(view, call, scope));
  if (stopped !== undefined) return actions.length > 0 ? actions : [failure(stopped)];
  const pauses = all.flatMap(({ call: { progress } }): Action<P>[] =>
    progress.step === "waiting" ? [{ kind: "timer", key: progress.timer, ms: progress.ms }] : []
  );
  const places = blueprint.workflow.maxParallel - running.length;
  const begin = all.filter(({ call }) => call.progress.step === "ready").slice(
    0,
    Math.max(0, places),
  )
    .map(({ view, call }) => callAction<P>(view, call, scope));
  const given = [...actions, ...begin, ...pauses];
  return given.length > 0 ? given : [endOf(blueprint, survey)];
}

/** The calls that have begun since all was to be done anew last, each with its item, which the call names by its place alone; null where there is no list. */
function subjectsBegun({ views }: Survey, { calls, freshRound }: WorkflowState): Map<string, Json> {
  const hasBegun = (call: string) => {
    const record = Object.hasOwn(calls, call) ? calls[call] : undefined;
    return record?.isOpen === true ||
      record?.outcomes.some(({ round }) => round >= freshRound) === true;
  };
  return new Map(
    views.flatMap((view) => view.calls).flatMap(({ call, item }): [string, Json][] =>
      hasBegun(call) ? [[call, item ?? null]] : []
    ),
  );
}

/** The failure that stops everything, if there is one: of one item as soon as it has failed. */
function stoppedBy(views: readonly NodeView[]): { name: string; reason: string } | undefined {
  for (const { node, calls, reason } of views) {
    if (node.onFailure !== "stop") continue;
    const failed = calls.find(({ progress }) => progress.step === "failed");
    if (failed?.progress.step !== "failed") continue;
    return { name: node.name, reason: reason ?? failed.progress.message };
  }
  return undefined;
}

function callAction<P extends PromptHead>(
  view: NodeView,
  { call, progress, ...rest }: CallView,
  scope: Scope,
): CallAction<P> {
  const { attempt } = progress;
  const head = {
    kind: "call" as const,
    key: callKey(call, attempt),
    call,
    attempt,
    tool: agentToolName(view.node.agent),
  };
  if (view.defect !== undefined) return { ...head, input: {}, defect: view.defect };
  const continues = progress.step === "ready" && progress.continues === true;
  try {
    const input = inputOf(view, { call, progress, ...rest }, scope);
    return continues ? { ...head, input, continues } : { ...head, input };
  } catch (thrown) {
    if (!(thrown instanceof EvaluationError)) throw thrown;
    return { ...head, input: {}, defect: thrown.message };
  }
}

function failure({ name, reason }: { name: string; reason: string }): Exit {
  const message = `Node "${name}" failed: ${clipped(reason)}`;
  return { kind: "exit", status: "failed", result: "", error: { code: "DRIVER", message } };
}

function endOf(blueprint: Blueprint, { views, scope }: Survey): Exit {
  const open = views.find(({ status }) => !isOver(status));
  if (open !== undefined) throw new Error(`Node "${open.node.name}" waits for nothing that comes`);
  const undone = views.filter(({ status, isCutOff }) => status === "failed" || isCutOff);
  const failed = undone.find(({ status }) => status === "failed");
  if (failed !== undefined && !views.some(({ status }) => status === "completed")) {
    return failure({ name: failed.node.name, reason: failed.reason ?? "" });
  }
  try {
    const result = [resultOf(blueprint, views, scope), ...undoneLines(undone)]
      .filter((part) => part !== "").join("\n\n");
    return { kind: "exit", status: "completed", result };
  } catch (thrown) {
    if (!(thrown instanceof EvaluationError)) throw thrown;
    const message = `The result can't be put together: ${thrown.message}`;
    return { kind: "exit", status: "failed", result: "", error: { code: "INVALID", message } };
  }
}

/** As the workflow says; else the answer of its last node, or of each of them under its name. */
function resultOf({ resultParts }: Blueprint, views: readonly NodeView[], scope: Scope): string {
  if (resultParts !== undefined) return fillIn(resultParts, scope);
  const last = views.filter(({ node, status }) => node.isLast && status === "completed");
  const [only] = last;
  if (only !== undefined && last.length === 1) return answersOf(only);
  return last.map((view) => `## ${view.node.name}\n\n${answersOf(view)}`).join("\n\n");
}

function answersOf({ calls }: NodeView): string {
  return calls.map(({ progress }) => progress.step === "done" ? progress.text : "").join("\n\n");
}

/** A failure that a workflow goes on after is told with its result. */
function undoneLines(undone: readonly NodeView[]): string[] {
  if (undone.length === 0) return [];
  const lines = undone.map(({ node, status, reason = "" }) =>
    `- ${node.name} ${status === "failed" ? "failed" : "was skipped"}: ${clipped(reason)}`
  );
  return [`Not done:\n${lines.join("\n")}`];
}

function clipped(reason: string): string {
  const line = reason.replaceAll(/\s+/g, " ").trim();
  const points = Array.from(line.slice(0, 2 * REASON_CHARS_MAX));
  return points.length <= REASON_CHARS_MAX
    ? points.join("")
    : `${points.slice(0, REASON_CHARS_MAX).join("")}…`;
}
