/**
 * `/proc/{pid}`: what a run's own folder tells of it, also after its end; no daemon is asked.
 *
 * A sink like any other: literal secrets of the manifest are redacted, arguments and results of sensitive tools masked.
 */
import { agentProgram } from "../agent/agent_program.ts";
import { systemClock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { TraceItem } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import { BlobStore } from "../journal/mod.ts";
import { MASKED } from "../kernel/answers.ts";
import { resultName } from "../policy/result_piece.ts";
import { exportFacts } from "./export_facts.ts";
import { shownEntries } from "./export_run.ts";
import { shownCost, unknownCalls } from "./report.ts";
import type { Runs, RunView } from "./runs.ts";
import { storedRedactor } from "./stored_secrets.ts";
import { notThere, type OwnNode } from "./vfs_nodes.ts";
import { type MountLine, mountLines, storedMounts } from "./vfs_mounts.ts";

export interface ProcDeps {
  storage: Storage;
  runs: Runs;
  /** The trace so far of the run in this folder. */
  trace(folder: string): AsyncIterable<TraceItem>;
}

/** Entries of `/proc/{pid}`, `fd` aside, which only a process at work has. */
const FILES: {
  readonly [name: string]: (deps: ProcDeps, view: RunView) => Promise<string>;
} = {
  context: contextText,
  intent: async ({ storage, runs }, { runId, ledger }) =>
    `${await redacted(storage, runs.folderOf(runId), ledger.state.intent)}\n`,
  mounts: async ({ storage, runs }, view) => mountLines(await mountsOf(storage, runs, view)),
  status: statusText,
  trace: traceText,
};

/** Names in `/proc/{pid}`, sorted. */
export const PROC_NAMES: readonly string[] = [...Object.keys(FILES), "fd", "results"].sort();

/** The node `name` of a run's `/proc/{pid}`, or what is below it. Throws NOT_FOUND with what there is. */
export async function procNode(
  deps: ProcDeps,
  run: string,
  { name, rest, path }: { name: string | undefined; rest: string; path: string },
): Promise<OwnNode> {
  const view = await deps.runs.view(await deps.runs.find(run));
  if (name === undefined || name === "") {
    return { kind: "folder", names: () => Promise.resolve([...PROC_NAMES]) };
  }
  if (name === "results") return resultsNode(deps, view, { rest, path });
  if (name === "fd" && rest === "") return { kind: "folder", names: () => Promise.resolve([]) };
  const file = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
  if (file === undefined || rest !== "") throw notThere(path, file ? [] : PROC_NAMES);
  return { kind: "file", read: () => file(deps, view) };
}

/** Results that were cut on their way to the model, whole. */
function resultsNode(
  { storage, runs }: ProcDeps,
  { ledger, runId }: RunView,
  { rest, path }: { rest: string; path: string },
): OwnNode {
  const kept = ledger.keptResults();
  const names = kept.map(({ sha256 }) => resultName(sha256));
  if (rest === "") return { kind: "folder", names: () => Promise.resolve(names) };
  const found = kept.find(({ sha256 }) => resultName(sha256) === rest || sha256 === rest);
  if (found === undefined) throw notThere(path, names);
  const folder = runs.folderOf(runId);
  const read = async () => {
    if (found.sensitive) return `${MASKED}\n`;
    const bytes = await new BlobStore(storage, folder).get(found);
    return await redacted(storage, folder, new TextDecoder().decode(bytes));
  };
  return { kind: "file", read };
}

async function redacted(storage: Storage, folder: string, text: string): Promise<string> {
  return (await storedRedactor(storage, folder)).redact(text);
}

/** The conversation so far, as the run's next request would have it. */
async function contextText({ storage, runs }: ProcDeps, { runId, ledger }: RunView) {
  const program = agentProgram("");
  if (ledger.identity.program !== program.name) {
    throw new SysError("NOT_FOUND", `A ${ledger.identity.program} has no conversation of its own`, {
      hint: "Its nodes are processes, each with a context",
    });
  }
  const folder = runs.folderOf(runId);
  const facts = await exportFacts(storage, folder);
  let state = program.initial();
  for await (const readable of shownEntries(storage, folder, facts)) {
    if (readable.kind === "entry") state = program.reduce(state, readable.entry);
  }
  return `${JSON.stringify(state.messages, null, 2)}\n`;
}

async function traceText({ trace, runs }: ProcDeps, { runId }: RunView): Promise<string> {
  const lines: string[] = [];
  for await (const item of trace(runs.folderOf(runId))) {
    lines.push(JSON.stringify(item.kind === "record" ? item.record : item));
  }
  return lines.map((line) => `${line}\n`).join("");
}

async function mountsOf(storage: Storage, runs: Runs, view: RunView): Promise<MountLine[]> {
  return await storedMounts(storage, runs.folderOf(view.runId), view);
}

/** States by the letter that Linux has for them. */
const STATES: { readonly [state: string]: string } = {
  created: "I (created)",
  running: "R (running)",
  suspended: "T (suspended)",
  zombie: "Z (zombie)",
  dead: "X (dead)",
};

/** One `Name:\tvalue` a line; what there is nothing to say of has no line. */
async function statusText({ runs }: ProcDeps, view: RunView): Promise<string> {
  const { ledger, runId } = view;
  const { identity } = ledger;
  const { end, model, lastMs, pids, activeSinceMs } = ledger.state;
  const newest = await runs.newestPids();
  const parent = identity.parentRunId;
  const totals = ledger.totalsAt(view.state === "running" ? systemClock.now() : lastMs);
  const unknown = unknownCalls(ledger).map(({ call }) => call);
  const cost = shownCost(totals);
  const rows: [string, string | number | undefined][] = [
    ["Name", identity.agent],
    ["State", STATES[view.state] ?? view.state],
    ["Reason", view.reason],
    ["Pid", ledger.pid],
    ["PPid", parent === undefined ? 0 : newest.get(parent) ?? 0],
    ["OsPid", view.liveIn],
    ["Pids", pids.join(" ")],
    ["RunId", runId],
    ["ParentRunId", parent],
    ["ForkedFrom", identity.forkedFrom?.run_id],
    ["Program", identity.program],
    ["Model", model],
    ["Cwd", identity.cwd],
    ["Started", new Date(identity.startedMs).toISOString()],
    [
      "ActiveSince",
      activeSinceMs === undefined ? undefined : new Date(activeSinceMs).toISOString(),
    ],
    ["Turns", totals.turns],
    ["ToolCalls", totals.tool_calls],
    ["FailedCalls", ledger.state.failedCalls],
    ["Tokens", totals.tokens],
    ["CostUsd", cost ?? undefined],
    ["ElapsedMs", totals.active_ms],
    ["Mounts", Object.keys(ledger.state.mounts).length],
    ["UnknownCalls", unknown.length === 0 ? undefined : unknown.join(" ")],
    ["ExitCode", end?.state === "exited" ? end.exitCode : undefined],
    ["Signal", end?.state === "exited" ? end.signal : undefined],
  ];
  return rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}:\t${String(value).replaceAll(/\s+/g, " ")}\n`]
  ).join("");
}
