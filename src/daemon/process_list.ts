/** `ps`: the runs on disk as rows. A run that has ended is known from its ends alone; only others are folded. */
import { SysError } from "../base/errors.ts";
import type { ProcessRow } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import { readEnds, readRun } from "../journal/mod.ts";
import { Ledger } from "../kernel/ledger.ts";
import { WORKFLOW_PROGRAM } from "../workflow/program_name.ts";
import { viewIfAny } from "./below.ts";
import { rowOf, shownCost } from "./report.ts";
import type { Runs, RunView } from "./runs.ts";
import { totalsBelow, withTree } from "./tree_use.ts";

/** Runs read at the same time. */
const READERS = 16;

/** Rows, oldest first; without `all` only runs that are at work or suspended. A run whose journal is damaged is suspended, reason `journal`. Rejects when the state folder can't be read. */
export async function listProcesses(
  storage: Storage,
  runs: Runs,
  { all }: { all: boolean },
): Promise<ProcessRow[]> {
  const [runIds, pids] = await Promise.all([runs.ids(), runs.newestPids()]);
  const rows: (ListedRow | undefined)[] = [];
  for (let from = 0; from < runIds.length; from += READERS) {
    const some = runIds.slice(from, from + READERS);
    rows.push(
      ...await Promise.all(some.map(async (runId) => {
        const row = await rowFor(storage, runs, runId, all);
        if (row === undefined) return undefined;
        return { ...row, row: { ...row.row, pid: pids.get(runId) ?? row.row.pid } };
      })),
    );
  }
  const listed = rows.filter((row) => row !== undefined);
  return withParents(await withTrees(runs, listed), pids);
}

/** Adds what is below each. A run that has ended is folded for that only where it can have had children that are counted: a workflow, or one whose children are listed. */
async function withTrees(runs: Runs, rows: readonly ListedRow[]): Promise<ListedRow[]> {
  const ledgers = new Map(rows.map(({ row, ledger }) => [row.run_id, ledger]));
  const ledgerOf = async (runId: string) => {
    const known = ledgers.get(runId);
    if (known !== undefined) return known;
    const read = (await viewIfAny(runs, runId).catch(() => undefined))?.ledger;
    ledgers.set(runId, read);
    return read;
  };
  const parents = new Set(rows.flatMap(({ parentRunId }) => parentRunId ?? []));
  const counted: ListedRow[] = [];
  for (const listed of rows) {
    const { row, isWorkflow } = listed;
    const ledger = listed.ledger ??
      (isWorkflow || parents.has(row.run_id) ? await ledgerOf(row.run_id) : undefined);
    counted.push(
      ledger === undefined
        ? listed
        : { ...listed, row: withTree(row, await totalsBelow(ledger, ledgerOf)) },
    );
  }
  return counted;
}

/** A process whose parent has ended, or is gone, is nobody's child any more. */
function withParents(rows: ListedRow[], pids: ReadonlyMap<string, number>): ProcessRow[] {
  const ended = new Set(
    rows.filter(({ row }) => row.state === "dead").map(({ row }) => row.run_id),
  );
  const listed = new Set(rows.map(({ row }) => row.run_id));
  return rows.map(({ row, parentRunId }) => {
    if (parentRunId === undefined || !listed.has(parentRunId)) return row;
    const isOrphan = ended.has(parentRunId) && row.state !== "dead";
    return { ...row, ppid: isOrphan ? 0 : pids.get(parentRunId) ?? 0 };
  });
}

/** A row, and the run that started it. */
interface ListedRow {
  row: ProcessRow;
  parentRunId: string | undefined;
  /** Where the whole journal was read. */
  ledger?: Ledger;
  isWorkflow?: boolean;
}

async function rowFor(
  storage: Storage,
  runs: Runs,
  runId: string,
  all: boolean,
): Promise<ListedRow | undefined> {
  try {
    const { first, last } = await readEnds(storage, runs.folderOf(runId));
    if (first === undefined || last === undefined) {
      // Rejects for a run that had begun; one that is being made, or never began, is no row.
      await readRun(storage, runs.folderOf(runId), () => {});
      return undefined;
    }
    if (last.type !== "run.exited" || first.type !== "run.started") {
      const view = await runs.view(runId);
      const isLive = view.state !== "dead";
      const row = rowOf(view, isLive ? Object.keys(view.ledger.state.mounts) : []);
      const { parentRunId } = view.ledger.identity;
      const shown = await shownRow(row, view.ledger, { storage, runs });
      return { row: shown, parentRunId, ledger: view.ledger };
    }
    if (!all) return undefined;
    const ledger = new Ledger();
    ledger.fold(first);
    ledger.fold(last);
    const told = rowOf({ runId, ledger, state: "dead", notices: [] }, []);
    const row = await shownRow(told, ledger, { storage, runs });
    const { turns, tokens, active_ms } = last.totals;
    const cost_usd = shownCost(last.totals);
    return {
      row: { ...row, turns, tokens_used: tokens, cost_usd, elapsed_ms: active_ms },
      parentRunId: first.parent_run_id,
      isWorkflow: first.program === WORKFLOW_PROGRAM,
    };
  } catch (thrown) {
    const code = thrown instanceof SysError ? thrown.code : undefined;
    // Being made, or removed, at this moment.
    if (code === "NOT_FOUND") return undefined;
    if (code !== "JOURNAL_DAMAGED" && code !== "INVALID") throw thrown;
    return { row: await damagedRow(storage, runs, runId), parentRunId: undefined };
  }
}

/** A child's intent is the word of its parent's model, which may repeat what a manifest of the family has in plain. */
async function shownRow(
  row: ProcessRow,
  ledger: Ledger,
  { storage, runs }: { storage: Storage; runs: Runs },
): Promise<ProcessRow> {
  const { spec, identity } = ledger.state;
  if (spec === undefined || identity?.parentRunId === undefined) return row;
  const { specsRedactor } = await import("./stored_secrets.ts");
  const redactor = await specsRedactor(storage, runs.folderOf(row.run_id), [spec]);
  return { ...row, intent: redactor.redact(row.intent) };
}

/** A run whose journal is damaged: it neither hides the other runs nor is hidden. Told is what can be read, but not which outcomes are unknown: what settled them may be in the damaged part. */
async function damagedRow(storage: Storage, runs: Runs, runId: string): Promise<ProcessRow> {
  const ledger = new Ledger();
  await readRun(storage, runs.folderOf(runId), (entry) => ledger.fold(entry)).catch(() => {});
  if (ledger.state.identity !== undefined) {
    const view: RunView = { runId, ledger, state: "suspended", reason: "journal", notices: [] };
    const { unknown_calls: _, ...row } = rowOf(view, []);
    return row;
  }
  return {
    pid: 0,
    ppid: 0,
    run_id: runId,
    state: "suspended",
    reason: "journal",
    agent: "?",
    intent: "",
    model: "",
    turns: 0,
    tokens_used: 0,
    cost_usd: null,
    elapsed_ms: 0,
    mounts: [],
    started_ms: 0,
  };
}
