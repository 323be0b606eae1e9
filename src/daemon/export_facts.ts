/**
 * What an export has to know of a run before its first line: who it was and how it ended, which tools are sensitive, which secrets its stored manifests hold.
 *
 * Reads the journal once, damaged records stepped over; nothing of its contents is kept.
 */
import { Redactor } from "../base/redaction.ts";
import { basename, dirname, join } from "../base/posix_path.ts";
import type { Totals } from "../base/budget.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { Storage } from "../base/storage.ts";
import type { BlobRef, Entry } from "../journal/entry.ts";
import { BlobStore, probeLease, readRun, visitReadable } from "../journal/mod.ts";
import { Ledger } from "../kernel/ledger.ts";
import { neverStarted } from "../kernel/never_started.ts";
import { literalSecretsOf } from "../manifest/secret_values.ts";
import { shownCost, unknownCalls } from "./report.ts";
import { storedAgent } from "./stored_agent.ts";
import { totalsBelow, withTree } from "./tree_use.ts";

export interface ExportFacts {
  runId: string;
  ledger: Ledger;
  /** Model-facing names of tools whose content is masked. */
  sensitive: ReadonlySet<string>;
  redactor: Redactor;
  /** Stored manifests that may be shown: their secrets are known. By hash. */
  specs: ReadonlyMap<string, Json>;
  isLive: boolean;
  /** What all below it used. */
  below: Totals;
}

/** Rejects with NOT_FOUND (exit 2) for a run that never started, JOURNAL_DAMAGED (exit 7) where not one record of it is left. */
export async function exportFacts(storage: Storage, folder: string): Promise<ExportFacts> {
  const runId = basename(folder);
  const ledger = new Ledger();
  const sensitive = new Set<string>();
  const specs = new Map<string, BlobRef>();
  let entries = 0;
  await visitReadable(storage, folder, (entry) => {
    entries += 1;
    ledger.fold(entry);
    noteSensitive(entry, sensitive);
    if (entry.type === "run.started" || entry.type === "run.resumed") {
      specs.set(entry.spec.sha256, entry.spec);
    }
  });
  if (entries === 0) {
    // Refuses a newer format by its number, and what is damaged through and through.
    await readRun(storage, folder, () => {});
    throw neverStarted(runId, "Read");
  }
  const isLive = await probeLease(storage, folder) !== undefined;
  const below = await totalsBelow(ledger, async (child) => {
    const found = new Ledger();
    const reading = readRun(storage, join(dirname(folder), child), (entry) => found.fold(entry));
    return await reading.then(({ lastSeq }) => lastSeq === 0 ? undefined : found, () => undefined);
  });
  return { runId, ledger, sensitive, isLive, below, ...await secretsOf(storage, folder, specs) };
}

function noteSensitive(entry: Entry, sensitive: Set<string>): void {
  if (entry.type !== "mount.ready" && entry.type !== "mount.changed") return;
  for (const tool of Object.values(entry.tools)) if (tool.sensitive) sensitive.add(tool.name);
}

/** A manifest that can't be read tells no secrets, so it isn't shown either. */
async function secretsOf(
  storage: Storage,
  folder: string,
  refs: ReadonlyMap<string, BlobRef>,
): Promise<Pick<ExportFacts, "redactor" | "specs">> {
  const secrets: string[] = [];
  const specs = new Map<string, Json>();
  const blobs = new BlobStore(storage, folder);
  for (const [sha256, ref] of refs) {
    const agent = await storedAgent(storage, folder, ref);
    if (agent === undefined) continue;
    secrets.push(...literalSecretsOf(agent));
    specs.set(sha256, JSON.parse(new TextDecoder().decode(await blobs.get(ref))));
  }
  return { redactor: new Redactor(secrets), specs };
}

/** The run in one object, snake_case, as `rnix ps --json` names things. */
export function runFacts({ runId, ledger, isLive, below }: ExportFacts): JsonObject {
  const { identity, end, intent, model, pids, budget, lastMs } = ledger.state;
  const totals = ledger.totalsAt(lastMs);
  const unknown = unknownCalls(ledger);
  const used = { turns: totals.turns, tokens_used: totals.tokens, cost_usd: shownCost(totals) };
  const { tree } = withTree(used, below);
  return {
    run_id: runId,
    agent: identity?.agent ?? null,
    intent,
    model,
    cwd: identity?.cwd ?? null,
    ...(identity?.forkedFrom === undefined ? {} : { forked_from: { ...identity.forkedFrom } }),
    pids,
    ...stateOf(end, isLive),
    started_ms: identity?.startedMs ?? null,
    last_ms: lastMs,
    budget: { ...budget },
    turns: totals.turns,
    tokens_used: totals.tokens,
    tool_calls: totals.tool_calls,
    cost_usd: shownCost(totals),
    ...(tree === undefined ? {} : { tree: { ...tree } }),
    elapsed_ms: totals.active_ms,
    ...(unknown.length === 0 ? {} : { unknown_calls: unknown.map((call) => ({ ...call })) }),
  };
}

function stateOf(end: Ledger["state"]["end"], isLive: boolean): JsonObject {
  if (isLive) return { state: "running" };
  if (end === undefined) return { state: "suspended", reason: "interrupted" };
  const error = end.error === undefined ? {} : { error: { ...end.error } };
  if (end.state === "suspended") return { state: "suspended", reason: end.reason, ...error };
  const { status, exitCode: exit_code, signal, result } = end;
  return {
    state: "dead",
    status,
    exit_code,
    ...(signal === undefined ? {} : { signal }),
    result,
    ...error,
  };
}
