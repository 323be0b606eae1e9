/**
 * `replay`: a run again, offline, from its recorded model and MCP answers, and whether it comes out the same.
 *
 * The run's own program is given the journal's entries one by one; before each entry that a program causes (a request, a call, the end) it is asked what it would do now, and that is held against what was done. So every incarnation, every settled outcome and every withdrawn tool is gone through again, and nothing leaves.
 */
import { Redactor } from "../../base/redaction.ts";
import type { AgentPrompt } from "../../agent/agent_program.ts";
import { systemClock } from "../../base/clock.ts";
import { canonicalJson, sha256Hex } from "../../base/json.ts";
import type { ReplayDifference, ReplayReport } from "../../base/operations.ts";
import type { Storage } from "../../base/storage.ts";
import type { BlobRef, Entry, EntryOf } from "../../journal/entry.ts";
import { readRun } from "../../journal/mod.ts";
import { readResultBinding } from "../../kernel/kept_results.ts";
import { requestHash, toolsHash } from "../../kernel/model_gate.ts";
import type { Action } from "../../kernel/program.ts";
import { callKey, compactKey, modelKey } from "../../kernel/program.ts";
import { RunState } from "../../kernel/run_state.ts";
import { definitionHash } from "../../kernel/tool_table.ts";
import type { Runs } from "../runs.ts";
import { ownMounts } from "../own_mounts.ts";
import { folding, programOf, type ProgramState, type RunProgram } from "../program_of.ts";
import { agentTools } from "../run_parts.ts";
import { endedRun } from "./ended_run.ts";
import { storedAgent } from "../stored_agent.ts";

/** A tool as far as a request's hash needs it. */
interface Offered {
  name: string;
  sha256: string;
}

/** The replay of a run. Rejects with INVALID (exit 2) for one that hasn't ended, NOT_FOUND, JOURNAL_DAMAGED. */
export async function replayRun(
  { storage, runs }: { storage: Storage; runs: Runs },
  run: string,
): Promise<ReplayReport> {
  const runId = await endedRun(runs, run);
  const folder = runs.folderOf(runId);
  const replay = new Replay(storage, folder, await folding(storage, folder));
  await readRun(storage, runs.folderOf(runId), (entry) => replay.take(entry));
  return replay.report(runId);
}

class Replay {
  readonly #storage: Storage;
  readonly #folder: string;
  readonly #state: RunState<ProgramState, AgentPrompt>;
  /** Of this incarnation, by server. */
  readonly #mounts = new Map<string, Offered[]>();
  #own: Offered[] = [];
  readonly #differences: ReplayDifference[] = [];
  #requests = 0;
  #calls = 0;

  constructor(storage: Storage, folder: string, program: RunProgram) {
    this.#state = new RunState(program);
    this.#storage = storage;
    this.#folder = folder;
  }

  async take(entry: Entry): Promise<void> {
    this.#compare(entry);
    if (entry.type === "run.started" || entry.type === "run.resumed") await this.#begin(entry.spec);
    if (entry.type === "mount.ready" || entry.type === "mount.changed") {
      this.#mounts.set(entry.server, Object.values(entry.tools));
    }
    this.#state.fold(entry);
  }

  report(runId: string): ReplayReport {
    return {
      run_id: runId,
      same: this.#differences.length === 0,
      requests: this.#requests,
      calls: this.#calls,
      differences: this.#differences,
    };
  }

  /** A new incarnation: nothing is mounted, and the manifest may be another one. */
  async #begin(spec: BlobRef): Promise<void> {
    this.#mounts.clear();
    const agent = await storedAgent(this.#storage, this.#folder, spec);
    if (agent !== undefined) this.#state.use(await programOf(agent));
    const mounts = agent === undefined ? [] : await ownMounts(agent, {
      clock: systemClock,
      guard: () => Promise.reject(new Error("Nothing is started in a replay")),
      clientEnv: {},
      cwd: "/",
      secrets: new Redactor([]),
    });
    const agents = agent === undefined ? [] : agentTools(agent);
    this.#own = [...mounts.flatMap(({ tools }) => tools), ...agents].map(({ definition }) => ({
      name: definition.modelName,
      sha256: definitionHash(definition),
    }));
  }

  #compare(entry: Entry): void {
    if (entry.type === "model.request") this.#compareRequest(entry);
    else if (entry.type === "call.intent") this.#compareCall(entry);
    else if (entry.type === "context.compacted") this.#compareCompaction(entry);
    else if (entry.type === "run.exited") this.#compareEnd(entry);
  }

  #compareRequest(entry: EntryOf<"model.request">): void {
    this.#requests += 1;
    const { turn, attempt, purpose } = entry;
    const isSummary = purpose === "summary";
    const action = isSummary
      ? this.#action("compact", compactKey(turn, attempt))
      : this.#action("model", modelKey(turn, attempt));
    const prompt = action?.kind === "model" || action?.kind === "compact"
      ? action.prompt
      : undefined;
    if (prompt === undefined) return this.#differs(entry.seq, "request", "not asked for now");
    const tools = isSummary ? [] : this.#offered();
    const hash = requestHash(entry.model, toolsHash(tools), prompt.sha256);
    if (hash === entry.request_sha256) return;
    this.#differs(entry.seq, "request", `turn ${turn} has other messages or tools now`);
  }

  #compareCompaction({ seq, turn, attempt, from, to }: EntryOf<"context.compacted">): void {
    const action = this.#action("compact", compactKey(turn, attempt));
    if (action?.kind === "compact" && action.from === from && action.to === to) return;
    this.#differs(seq, "request", `before turn ${turn} the history is not compacted so now`);
  }

  #compareCall(entry: EntryOf<"call.intent">): void {
    this.#calls += 1;
    const action = this.#action("call", callKey(entry.call, entry.attempt));
    const at = `call ${entry.call} of ${entry.tool}`;
    if (action?.kind !== "call") return this.#differs(entry.seq, "call", `${at} is not made now`);
    if (action.tool !== entry.tool) {
      return this.#differs(entry.seq, "call", `${at} is one of ${action.tool} now`);
    }
    if (sha256Hex(canonicalJson(action.input)) === entry.input_sha256) return;
    this.#differs(entry.seq, "call", `${at} has other arguments now`);
  }

  /** A run that was ended from outside (a signal, a limit, a lost server) has no end of its own, whatever its program would have come to with what the signal made of its calls. */
  #compareEnd(entry: EntryOf<"run.exited">): void {
    if (entry.status === "killed") return;
    const action = this.#state.decide().find(({ kind }) => kind === "exit");
    if (action?.kind !== "exit") {
      if (entry.status === "completed") this.#differs(entry.seq, "end", "it doesn't end now");
      return;
    }
    if (action.status !== entry.status) {
      this.#differs(entry.seq, "end", `it was ${entry.status} and is ${action.status} now`);
    } else if (action.result !== entry.result) {
      this.#differs(entry.seq, "end", "its result is another one now");
    }
  }

  #action(kind: "model" | "compact" | "call", key: string): Action<AgentPrompt> | undefined {
    return this.#state.decide().find((action) =>
      action.kind !== "exit" && action.kind === kind && action.key === key
    );
  }

  /** What the model was offered: the mounts' tools, rnix's own, and the one that reads cut results. */
  #offered(): Offered[] {
    const kept = this.#state.ledger.keptResults();
    const reads = kept.length === 0 ? [] : [readResultBinding(kept, 0).definition];
    return [
      ...[...this.#mounts.values()].flat(),
      ...this.#own,
      ...reads.map((definition) => ({
        name: definition.modelName,
        sha256: definitionHash(definition),
      })),
    ].sort((a, b) => a.name < b.name ? -1 : 1);
  }

  #differs(seq: number, what: ReplayDifference["what"], message: string): void {
    this.#differences.push({ record: seq, what, message });
  }
}
