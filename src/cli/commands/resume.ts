/** `rnix resume`: a run goes on where its journal ends; `--plan` only says how. */
import { SysError } from "../../base/errors.ts";
import { ON_UNKNOWN } from "../../base/effect.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import type { ResumePlan, ResumeRequest } from "../../base/operations.ts";
import { shortRunId } from "../../base/ids.ts";
import { counted } from "../amounts.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Invocation, Outcome } from "../command.ts";
import {
  budgetOf,
  hasSwitch,
  onUnknownOf,
  parseUnknownRule,
  valueOf,
  wholeNumber,
} from "../flag_values.ts";
import { errorText, namingRun, shortIds } from "../failure.ts";
import { oneLine } from "../plain_text.ts";
import { causeText } from "../report.ts";
import { clientFacts } from "../supervise.ts";
import { resumeAll } from "./resume_all.ts";
import { LIMIT_FLAGS, stayOrDetach } from "./run.ts";

export const resume: Command = {
  name: "resume",
  summary: "Go on with a run that was suspended, failed or killed",
  positionals: [
    { name: "run", kind: "run", optional: true },
    { name: "intent", optional: true, rest: true },
  ],
  flags: [
    { name: "all", short: "a", summary: "All that was cut off: by a crash, a shutdown, a hang-up" },
    { name: "plan", summary: "Say what would be done, and do nothing" },
    {
      name: "unknown",
      value: "[[RUN/]CALL:]HOW",
      repeated: true,
      summary: "Settle an unknown outcome: retry, done, done=JSON, skip or fail",
    },
    {
      name: "on-unknown",
      value: "HOW",
      summary: "For all others: ask, retry, skip or fail",
      choices: ON_UNKNOWN,
    },
    { name: "accept-cut", summary: "Go on although durable records may have been cut off" },
    { name: "stored", summary: "Use the manifest as it was at the start of the run" },
    { name: "fork", summary: "Make a new run that goes on from here" },
    { name: "from-step", value: "N", summary: "With --fork: from turn N" },
    { name: "node", value: "NODE", summary: "A fork of a workflow in which this node runs again" },
    { name: "from", value: "NODE", summary: "The same with all nodes that are after it" },
    { name: "yes", summary: "With a fork: although effects of what it leaves out stay done" },
    ...LIMIT_FLAGS,
  ],
  details: `A completed run needs a
new intent, or --fork. The environment is that of this command, the folder that of the run. What an
agent starts is refused --unknown, --on-unknown and --accept-cut (exit 2): a person settles what became
of a call. Every --unknown has to fit a call whose outcome is unknown, else nothing is resumed.`,
  async run(invocation, context) {
    const stream = hasSwitch(invocation, "stream");
    const request = requestOf(invocation, context, stream);
    const all = hasSwitch(invocation, "all");
    checkWhich(invocation, all);
    if (hasSwitch(invocation, "plan")) return await plan(request, context);
    if (settlesUnknown(request) && await context.world.insideRun(context.env)) {
      throw decidesForItself();
    }
    if (all) return await resumeAll(request, context);
    return await stayOrDetach(invocation, context, async (observer) => {
      const system = await context.system();
      return await system.resume(request, observer);
    });
  },
};

/** One run, or all of them; what is meant for one run doesn't go with all. */
function checkWhich(invocation: Invocation, all: boolean): void {
  const [run] = invocation.words;
  if (!all && run === undefined) {
    throw usageError('Command "resume" needs <run>', "rnix ps -a lists them");
  }
  if (!all) return;
  if (run !== undefined) throw usageError('"--all" goes without a run', "name one, or say --all");
  const single = ["fork", "plan", "stream", "from-step", "node", "from"].find((name) =>
    hasSwitch(invocation, name)
  );
  if (single === undefined) return;
  throw usageError(`"--${single}" doesn't go with "--all"`, "give it to one run at a time");
}

function requestOf(invocation: Invocation, context: Context, stream: boolean): ResumeRequest {
  const [run = "", ...intent] = invocation.words;
  const budget = budgetOf(invocation);
  const model = valueOf(invocation, "model");
  const onUnknown = onUnknownOf(invocation);
  const fromStep = valueOf(invocation, "from-step");
  const again = againOf(invocation, intent.length > 0);
  const fork = hasSwitch(invocation, "fork") || again !== undefined;
  if (fromStep !== undefined && !fork) {
    throw usageError(`"--from-step" needs "--fork"`, "a run itself only goes on from its end");
  }
  return {
    run,
    client: clientFacts(context, stream),
    unknown: (invocation.values.get("unknown") ?? []).map(parseUnknownRule),
    stored: hasSwitch(invocation, "stored"),
    acceptCut: hasSwitch(invocation, "accept-cut"),
    fork,
    yes: hasSwitch(invocation, "yes"),
    trust: hasSwitch(invocation, "trust"),
    ...(hasSwitch(invocation, "detach") ? { detached: true } : {}),
    ...(intent.length === 0 ? {} : { intent: intent.join(" ") }),
    ...(budget === undefined ? {} : { budget }),
    ...(model === undefined ? {} : { model }),
    ...(onUnknown === undefined ? {} : { onUnknown }),
    ...(again === undefined ? {} : { again }),
    ...(fromStep === undefined ? {} : { fromStep: wholeNumber("--from-step", fromStep, 0) }),
  };
}

/** `--node` or `--from`. */
function againOf(invocation: Invocation, hasIntent: boolean): ResumeRequest["again"] {
  const node = valueOf(invocation, "node");
  const from = valueOf(invocation, "from");
  if (node === undefined && from === undefined) return undefined;
  const flag = node === undefined ? "--from" : "--node";
  if (node !== undefined && from !== undefined) {
    throw usageError('"--node" and "--from" exclude each other', "--from runs that node again too");
  }
  if (hasSwitch(invocation, "from-step")) {
    throw usageError(`"${flag}" and "--from-step" exclude each other`, "a workflow has no turns");
  }
  if (hasIntent) {
    throw usageError(`"${flag}" goes without a new intent`, "without it all nodes run again");
  }
  return { node: node ?? from ?? "", andAfter: node === undefined };
}

/** Whether the request says what is to become of calls whose outcome isn't known; to accept a cut is to say it of those that were cut. */
function settlesUnknown({ unknown, onUnknown = "ask", acceptCut }: ResumeRequest): boolean {
  return unknown.length > 0 || onUnknown !== "ask" || acceptCut;
}

/** A rail, not a wall: a program that speaks to the socket by itself passes by it. */
function decidesForItself(): SysError {
  return new SysError("PERMISSION", "An agent can't settle what became of a call", {
    syscall: "Resume",
    exitCode: EXIT_USAGE,
    hint:
      "This command was started from within a run; a person settles it in a terminal of their own",
  });
}

/** A plan is an answer whatever it says, so it exits 0; what the resume would exit with is in it. */
async function plan(request: ResumeRequest, context: Context): Promise<Outcome> {
  const system = await context.system();
  const made = await system.planResume(request);
  return { exitCode: 0, data: made, text: planText(made) };
}

/** The plan as lines. */
export function planText(plan: ResumePlan): string {
  const state = plan.reason === undefined ? plan.state : `${plan.state} (${plan.reason})`;
  const { error, fork } = plan;
  const lines = [
    `run ${shortRunId(plan.run_id)}  ${oneLine(plan.agent)}  ${state}`,
    `${counted(plan.turns, "turn")} in ${counted(plan.entries, "journal record")}`,
    ...plan.notices.map((notice) => `notice: ${shortIds(oneLine(notice))}`),
    ...(fork === undefined ? [] : forkLines(fork)),
    ...(error === undefined
      ? [`mount: ${plan.mounts.length === 0 ? "nothing" : oneLine(plan.mounts.join(", "))}`]
      : []),
    ...(plan.tools ?? []).map(toolsText),
    ...plan.settle.flatMap(({ call, tool, effect, attempt, would, ...why }) => [
      oneLine(`settle: ${call} ${tool} (${effect}, attempt ${attempt}): ${causeText(why)}`),
      `        ${oneLine(would)}`,
    ]),
    ...plan.send.map(sendLine),
    ...(plan.children ?? []).flatMap(({ call, tool, run_id, does, plan }) => [
      oneLine(`agent: ${call} ${tool} (run ${shortRunId(run_id)}): ${does}`),
      ...(plan === undefined ? [] : planText(plan).split("\n").map((line) => `  ${line}`)),
    ]),
    `next: ${oneLine(plan.next)}`,
    ...(error === undefined ? [] : [errorText(namingRun(error, plan.run_id))]),
  ];
  if (plan.exit_code !== 0) lines.push(`as it stands the resume would exit ${plan.exit_code}`);
  return lines.join("\n");
}

function toolsText({ server, known, would }: NonNullable<ResumePlan["tools"]>[number]): string {
  const tools = `${counted(known, "tool")} known`;
  if (would === "compare") return oneLine(`tools: ${server}: compared with the ${tools}`);
  if (would === "learn") return oneLine(`tools: ${server}: new, all it lists is learnt`);
  return oneLine(`tools: ${server}: ${tools}, withdrawn: the manifest no longer names it`);
}

function forkLines({ from_step, again, stays_done }: NonNullable<ResumePlan["fork"]>): string[] {
  const where = from_step === undefined ? "its end" : `step ${from_step}`;
  return [
    again === undefined
      ? `fork: a new run that goes on from ${where}`
      : oneLine(`fork: a new run in which again: ${again.join(", ")}`),
    ...stays_done.map(({ call, tool, effect }) =>
      oneLine(`stays done: ${call} ${tool} (${effect})`)
    ),
  ];
}

function sendLine({ call, tool, effect, continues }: ResumePlan["send"][number]): string {
  return oneLine(
    continues === undefined
      ? `send: ${call} ${tool} (${effect})`
      : `go on: ${call} ${tool} (run ${shortRunId(continues)})`,
  );
}
