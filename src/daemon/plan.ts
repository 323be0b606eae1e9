/**
 * `resume --plan`: what a resume would do, worked out by folding what it would append. Takes no lease, mounts nothing, writes nothing.
 *
 * The same refusals, rules, limits and programs decide here as in the resume itself.
 */
import type { AgentPrompt } from "../agent/agent_program.ts";
import type { Budget } from "../base/budget.ts";
import { systemClock } from "../base/clock.ts";
import type { OnUnknown } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import {
  EXIT_COMPLETED,
  EXIT_FAILED,
  EXIT_USAGE,
  exitOfSuspend,
  type SuspendReason,
} from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { ErrorBody, ResumePlan, ResumeRequest } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import type { EntryBody } from "../journal/entry.ts";
import { BlobStore, cutAhead, readRun } from "../journal/mod.ts";
import { undecidedError } from "../kernel/endings.ts";
import { forkRefusal, readForkedPast } from "../kernel/fork.ts";
import { ServerPool } from "../devices/mcp/server_pool.ts";
import { NO_CHILDREN } from "../kernel/children.ts";
import type { OpenCall } from "../kernel/ledger.ts";
import type { Action, CallAction } from "../kernel/program.ts";
import { neverStarted } from "../kernel/never_started.ts";
import { intentRefusal } from "../kernel/resume.ts";
import { RunState } from "../kernel/run_state.ts";
import { checkRules, ruleFor, type SettleRule } from "../kernel/settle_rules.ts";
import { settledByPolicy, settledByUser, unknownCall, verdictFor } from "../kernel/settler.ts";
import { lostNotice } from "../kernel/lost_accesses.ts";
import { takeCut } from "../kernel/take_cut.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { callLimit, describeLimit, modelLimit } from "../policy/limits.ts";
import { ownRules } from "./below.ts";
import { planChildren, stopBelow } from "./plan_below.ts";
import type { AgentSource } from "./agent_source.ts";
import { WaysOut } from "../base/ways_out.ts";
import { requirePrices } from "./model_parts.ts";
import { againOf } from "./run_again.ts";
import { folding, programOf, type ProgramState } from "./program_of.ts";
import { readyAgent } from "./run_parts.ts";
import { requireSameSubjects } from "./same_subjects.ts";
import type { Runs, RunView } from "./runs.ts";
import { WORKFLOW_PROGRAM } from "../workflow/program_name.ts";
import { rulesFor } from "./unknown_rules.ts";

export interface PlanDeps {
  storage: Storage;
  runs: Runs;
  agents: AgentSource;
}

/** Nothing but children that haven't ended. */
const UNDER_WAY = "agents under way";

type State = RunState<ProgramState, AgentPrompt>;
/** A part of the plan that is filled in as far as the resume would come. */
type Course = Pick<
  ResumePlan,
  "mounts" | "tools" | "settle" | "send" | "children" | "next" | "error" | "exit_code"
>;

/** The plan for `runId`. Rejects with JOURNAL_DAMAGED for damage that a resume would refuse as well. */
export async function planOf(
  deps: PlanDeps,
  runId: string,
  request: ResumeRequest,
): Promise<ResumePlan> {
  const view = await deps.runs.view(runId);
  const past = await readPast(deps, runId, request);
  const { state } = past;
  if (past.entries === 0) throw neverStarted(runId);
  const course = past.refusal === undefined && !isHeld(view, request)
    ? await courseOf(deps, runId, request, state)
    : refused(past.refusal ?? heldError(view));
  return {
    run_id: runId,
    state: view.state,
    ...(view.reason === undefined ? {} : { reason: view.reason }),
    agent: state.ledger.identity.agent,
    entries: past.entries,
    turns: state.ledger.state.totals.turns,
    notices: [...view.notices, ...lostIn(view)],
    ...(past.fork === undefined ? {} : { fork: past.fork }),
    ...course,
  };
}

/** What persons did on its devices and nobody will know the outcome of. */
function lostIn({ state, ledger }: RunView): string[] {
  if (state === "running") return [];
  return ledger.openAccesses().filter(({ effect }) => effect !== "read").map(lostNotice);
}

interface Past {
  state: State;
  entries: number;
  refusal?: SysError;
  fork?: NonNullable<ResumePlan["fork"]>;
}

/** What the resume would begin with: the run's past, or the part of it that a fork takes over. */
async function readPast(
  { storage, runs }: PlanDeps,
  runId: string,
  request: ResumeRequest,
): Promise<Past> {
  const folder = runs.folderOf(runId);
  const state = new RunState(await folding(storage, folder));
  if (!request.fork) {
    const read = await readRun(storage, folder, (entry) => state.fold(entry));
    const refusal = read.lastSeq === 0 ? undefined : intentRefusal(state.ledger, request.intent) ??
      (read.mayLackDurable && !request.acceptCut ? cutError(runId) : undefined);
    return { state, entries: read.lastSeq, ...(refusal === undefined ? {} : { refusal }) };
  }
  const again = await againOf({ storage, runs }, runId, request);
  const { program } = (await runs.view(runId)).ledger.identity;
  const repeatsFailed = program === WORKFLOW_PROGRAM;
  const past = await readForkedPast(storage, folder, {
    step: request.fromStep,
    again,
    repeatsFailed,
  });
  for (const entry of past.kept) state.fold(entry);
  const refusal = forkRefusal(past, {
    sourceRunId: runId,
    again,
    step: request.fromStep,
    repeatsFailed,
    confirmed: request.yes,
    hasIntent: request.intent !== undefined,
  });
  const stays_done = past.after.map(({ call, tool, effect }) => ({ call, tool, effect }));
  const step = request.fromStep === undefined ? {} : { from_step: request.fromStep };
  return {
    state,
    entries: past.kept.length,
    ...(refusal === undefined ? {} : { refusal }),
    fork: { ...step, ...(again === undefined ? {} : { again: again.nodes }), stays_done },
  };
}

/** A fork takes a past that is on disk, whoever is at work. */
function isHeld(view: RunView, request: ResumeRequest): boolean {
  return view.liveIn !== undefined && !request.fork;
}

function heldError({ runId, liveIn }: RunView): SysError {
  return new SysError("INVALID", `The run is at work in process ${liveIn}`, {
    syscall: "Resume",
    device: runId,
    exitCode: EXIT_USAGE,
    hint: "A run has one owner at a time: wait for it, or end it first",
  });
}

function cutError(runId: string): SysError {
  return new SysError("JOURNAL_DAMAGED", "Records that may have been durable are torn off", {
    syscall: "Resume",
    device: runId,
    exitCode: exitOfSuspend("journal"),
    hint: "Go on without them: rnix resume RUN --accept-cut",
  });
}

/** Folds what the resume would append, and sees what its program would start then. */
async function courseOf(
  deps: PlanDeps,
  runId: string,
  request: ResumeRequest,
  state: State,
): Promise<Course> {
  const told = await rulesFor(deps.runs, request.unknown, [runId]);
  const rules = await ownRules(deps.runs, state.ledger, told);
  let chosen: { agent: LoadedAgent; budget: Budget };
  try {
    chosen = await agentOf(deps, runId, request, state);
    if (!request.fork) await foldCut(deps, runId, state);
    checkRules(rules, state.ledger.openCalls(), runId);
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    return refused(thrown);
  }
  const { agent, budget } = chosen;
  state.use(await programOf(agent));
  const onUnknown = request.onUnknown ?? agent.manifest.onUnknown;
  const { settle, undecided } = settleOpen(state, { rules, onUnknown }, runId);
  if (undecided.length > 0) {
    return { ...suspended("unknown-outcome", undecidedError(undecided)), settle };
  }
  foldResumed(state, request, budget);
  const mounts = agent.manifest.servers?.map((server) => server.name) ?? [];
  const next = nextOf(state, mounts);
  const isMounted = next.exit_code === EXIT_COMPLETED && next.mounts === mounts;
  const tools = isMounted ? { tools: toolsOf(state, mounts) } : {};
  return { ...await withChildren(deps, request, state, next), ...tools, settle };
}

/** The course with what the children of the run would do; where it does nothing but wait for them, it goes as far as they do. */
async function withChildren(
  deps: PlanDeps,
  request: ResumeRequest,
  { ledger }: State,
  course: Omit<Course, "settle">,
): Promise<Omit<Course, "settle">> {
  const planBelow = (runId: string, request: ResumeRequest) => planOf(deps, runId, request);
  const children = await planChildren({ runs: deps.runs, planOf: planBelow }, ledger, request);
  if (children.length === 0) return course;
  const stop = course.next === UNDER_WAY ? stopBelow(children) : undefined;
  return { ...course, ...stop, children };
}

/** Calls that are unknown because records were cut, as the resume would find them. */
async function foldCut({ storage, runs }: PlanDeps, runId: string, state: State): Promise<void> {
  const cut = await cutAhead(storage, runs.folderOf(runId));
  if (cut !== undefined) takeCut(cut, state, { append: (body) => foldBody(state, body) });
}

async function agentOf(
  { storage, runs, agents }: PlanDeps,
  runId: string,
  request: ResumeRequest,
  state: State,
): Promise<{ agent: LoadedAgent; budget: Budget }> {
  const { ledger } = state;
  const { spec, end, budget } = ledger.state;
  if (spec === undefined) throw new SysError("JOURNAL_DAMAGED", "The run has no stored manifest");
  const blob = await new BlobStore(storage, runs.folderOf(runId)).get(spec);
  const json: Json = JSON.parse(new TextDecoder().decode(blob));
  const stored = agents.stored(json);
  const useStored = request.stored || request.fork || end?.state !== "exited";
  const { client } = request;
  const { cwd } = ledger.identity;
  const agent = useStored ? stored : await agents.present(stored, { ...client, cwd });
  if (!useStored) await requireSameSubjects(state, { stored, present: agent });
  if (!useStored && !request.trust && !client.interactive) {
    await agents.requireConsent(agent, { ...client, cwd });
  }
  // Finds what is wrong with the surroundings; nothing of it is started.
  const ready = readyAgent(agent, {
    storage,
    clock: systemClock,
    guard: () => Promise.reject(new Error("A plan starts nothing")),
    clientEnv: client.env,
    cwd,
    ping: (await agents.settings({ ...client, cwd })).ping,
    model: request.model ?? (useStored ? ledger.state.model : undefined),
    servers: new ServerPool(),
    ways: new WaysOut(),
    children: NO_CHILDREN,
    notice: () => {},
  });
  const limits = useStored ? budget : ready.budget;
  requirePrices(ready, { ...limits, ...request.budget });
  return { agent, budget: limits };
}

/** Settles what the resume would settle before it mounts; calls that stay open are undecided. */
function settleOpen(
  state: State,
  { rules, onUnknown }: { rules: readonly SettleRule[]; onUnknown: OnUnknown },
  runId: string,
): { settle: ResumePlan["settle"]; undecided: OpenCall[] } {
  const undecided: OpenCall[] = [];
  const settle = state.ledger.openCalls().map((open) => {
    const { run_id: _run, ...call } = unknownCall(runId, open);
    const decision = ruleFor(rules, open.call);
    const verdict = verdictFor(open, onUnknown);
    if (decision !== undefined) foldBody(state, settledByUser(open, decision));
    else if (verdict === "ask") undecided.push(open);
    else foldBody(state, settledByPolicy(open, verdict));
    return { ...call, would: decision?.how ?? verdict };
  });
  return { settle, undecided };
}

function foldResumed(state: State, request: ResumeRequest, budget: Budget): void {
  const { ledger } = state;
  const { spec, lastMs, model } = ledger.state;
  if (spec === undefined) return;
  foldBody(state, {
    type: "run.resumed",
    pid: ledger.pid,
    spec,
    ...(request.intent === undefined ? {} : { intent: request.intent }),
    model,
    budget,
    active_ms: ledger.totalsAt(lastMs).active_ms,
    rnix_version: "",
  });
  if (request.budget !== undefined) {
    foldBody(state, { type: "budget.changed", budget: request.budget });
  }
}

function foldBody(state: State, body: EntryBody): void {
  const head = { v: 1, seq: 0, ts: state.ledger.state.lastMs, synced: 0 };
  state.fold({ ...head, ...body });
}

type Work = Exclude<Action<AgentPrompt>, { kind: "exit" }>;

function nextOf(state: State, mounts: string[]): Omit<Course, "settle"> {
  const actions = state.decide();
  const work = actions.filter((action): action is Work =>
    action.kind !== "exit" && !state.ledger.hasStarted(action.key)
  );
  const exit = actions.find((action) => action.kind === "exit");
  if (work.length === 0 && exit !== undefined) {
    const exit_code = exit.status === "completed" ? EXIT_COMPLETED : EXIT_FAILED;
    return { mounts: [], send: [], next: `exit: ${exit.status}`, exit_code };
  }
  const [hit] = work.flatMap(({ kind }) => limitFor(state, kind) ?? []);
  if (hit !== undefined && work.every(({ kind }) => limitFor(state, kind) !== undefined)) {
    const { message, hint } = describeLimit(hit);
    return suspended("limit", new SysError("BUDGET_EXCEEDED", message, { hint }));
  }
  const send = work.flatMap((action) =>
    action.kind === "call"
      ? [{
        call: action.call,
        tool: action.tool,
        effect: effectIn(state, action.tool),
        ...goesOn(state, action),
      }]
      : []
  );
  const asksModel = work.some(({ kind }) => kind === "model" || kind === "compact");
  const under = state.ledger.openChildren().length;
  const goOn = under === 0 ? "" : `; ${under} under way`;
  const next = state.ledger.identity.program === WORKFLOW_PROGRAM
    ? `nodes of the workflow${goOn}`
    : send.length > 0
    ? "calls of the last reply"
    : asksModel
    ? "model request"
    : UNDER_WAY;
  return { mounts, send, next, exit_code: EXIT_COMPLETED };
}

/** The child that a call takes up again. */
function goesOn({ ledger }: State, { call, continues }: CallAction): { continues?: string } {
  const ended = continues === true ? ledger.endedChild(call) : undefined;
  return ended === undefined ? {} : { continues: ended.runId };
}

/** What is known of the tools of each server, and what becomes of it once the servers are mounted. */
function toolsOf({ ledger }: State, mounts: readonly string[]): NonNullable<ResumePlan["tools"]> {
  const known = Object.values(ledger.state.mounts).map(({ server, tools }) => ({
    server,
    known: Object.keys(tools).length,
    would: mounts.includes(server) ? "compare" as const : "withdraw" as const,
  })).filter(({ known, would }) => known > 0 || would === "compare");
  const learnt = mounts.filter((server) => !Object.hasOwn(ledger.state.mounts, server))
    .map((server) => ({ server, known: 0, would: "learn" as const }));
  return [...known, ...learnt];
}

function limitFor({ ledger }: State, kind: Work["kind"]) {
  const { lastMs, pricedUsd, budget } = ledger.state;
  const totals = { ...ledger.totalsAt(lastMs), cost_usd: pricedUsd };
  return kind === "model" || kind === "compact"
    ? modelLimit(budget, totals)
    : callLimit(budget, totals);
}

function refused(error: SysError): Course {
  return { ...stopped(error, error.exitCode ?? EXIT_FAILED), next: "refused" };
}

function suspended(reason: SuspendReason, error: SysError): Course {
  return { ...stopped(error, exitOfSuspend(reason)), next: `suspend (${reason})` };
}

/** A resume that comes no further than to this error. */
function stopped(error: SysError, exit_code: number): Omit<Course, "next"> {
  return { mounts: [], settle: [], send: [], error: errorOf(error), exit_code };
}

function errorOf({ code, message, hint }: SysError): ErrorBody {
  return { code, message, ...(hint === undefined ? {} : { hint }) };
}

function effectIn(state: State, tool: string): string {
  const records = Object.values(state.ledger.state.mounts).flatMap(({ tools }) =>
    Object.values(tools)
  );
  return records.find(({ name }) => name === tool)?.effect ?? "write";
}
