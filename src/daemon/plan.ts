/** `resume --plan`: what a resume would do, worked out from the journal alone. Takes no lease, mounts nothing, writes nothing. */
import { agentProgram, type AgentPrompt } from "../agent/agent_program.ts";
import type { AgentState } from "../agent/agent_state.ts";
import { EXIT_COMPLETED, exitOfSuspend } from "../base/exit.ts";
import type { ResumePlan, ResumeRequest } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import { BlobStore, readRun } from "../journal/mod.ts";
import type { Action, PromptHead } from "../kernel/program.ts";
import { RunState } from "../kernel/run_state.ts";
import { ruleFor, type SettleRule, unknownCall, verdictFor } from "../kernel/settler.ts";
import { loadSpec } from "../manifest/spec.ts";
import type { Runs, RunView } from "./runs.ts";
import { rulesFor } from "./unknown_rules.ts";

type CallAction = Extract<Action<PromptHead>, { kind: "call" }>;

/** The plan for `runId`. Rejects with JOURNAL_DAMAGED for damage that a resume would refuse as well. */
export async function planOf(
  storage: Storage,
  runs: Runs,
  runId: string,
  request: ResumeRequest,
): Promise<ResumePlan> {
  const view = await runs.view(runId);
  const state = new RunState(agentProgram(""));
  const folder = runs.folderOf(runId);
  const { lastSeq } = await readRun(storage, folder, (entry) => state.fold(entry));
  const { spec } = state.ledger.state;
  const agent = spec === undefined ? undefined : loadSpec(
    JSON.parse(new TextDecoder().decode(await new BlobStore(storage, folder).get(spec))),
  );
  const onUnknown = request.onUnknown ?? agent?.manifest.onUnknown ?? "ask";
  const rules = rulesFor(request.unknown, [runId]);
  const settle = state.ledger.openCalls().map((open) => ({
    ...unknownCall(runId, open),
    would: wouldSettle(rules, open.call, verdictFor(open, onUnknown)),
  }));
  const undecided = settle.filter(({ would }) => would === "ask");
  const open = new Set(settle.map(({ call }) => call));
  const calls = state.decide().filter((action): action is CallAction => action.kind === "call");
  return {
    run_id: runId,
    state: view.state,
    ...(view.reason === undefined ? {} : { reason: view.reason }),
    agent: state.ledger.identity.agent,
    entries: lastSeq,
    turns: state.ledger.state.totals.turns,
    notices: noticesOf(view),
    mounts: agent?.manifest.servers?.map((server) => server.name) ?? [],
    settle: settle.map(({ run_id: _run, ...rest }) => rest),
    send: calls.filter(({ call, key }) => !open.has(call) && !state.ledger.hasStarted(key))
      .map(({ call, tool }) => ({ call, tool, effect: effectIn(state, tool) })),
    next: undecided.length > 0 ? "suspend: unknown-outcome" : nextOf(state, calls.length > 0),
    exit_code: undecided.length > 0 ? exitOfSuspend("unknown-outcome") : EXIT_COMPLETED,
  };
}

function wouldSettle(rules: readonly SettleRule[], call: string, verdict: string): string {
  return ruleFor(rules, call)?.how ?? verdict;
}

function noticesOf(view: RunView): string[] {
  if (view.liveIn === undefined) return view.notices;
  return [...view.notices, `The run is at work in process ${view.liveIn}; it can't be resumed now`];
}

function nextOf(state: RunState<AgentState, AgentPrompt>, calls: boolean): string {
  const { end } = state.ledger.state;
  if (end?.state === "exited" && end.status === "completed") {
    return "nothing: the run has completed";
  }
  if (calls) return "calls of the last reply";
  return state.decide().some((action) => action.kind === "exit") ? "exit" : "model request";
}

function effectIn(state: RunState<AgentState, AgentPrompt>, tool: string): string {
  const records = Object.values(state.ledger.state.mounts).flatMap(({ tools }) =>
    Object.values(tools)
  );
  return records.find(({ name }) => name === tool)?.effect ?? "write";
}
