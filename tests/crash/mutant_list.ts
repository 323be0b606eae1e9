/** Changes that take a promise out of rnix, each as a text in a file and what it becomes. The harness must notice every one. */
export interface Mutant {
  name: string;
  file: string;
  from: string;
  to: string;
  /** One of the five that the harness has always been measured by, and the part of it that shows so soonest. */
  core?: { suite: string; every: number };
  /** Suite that has to notice it; all of them without it. */
  suite?: string;
  /** Part of the name of the scenarios that show it; all of them without it. */
  scenario?: string;
  /** Random schedules have to notice it instead: so many. */
  schedules?: number;
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: "no intent is journaled",
    core: { suite: "one crash", every: 11 },
    file: "src/kernel/run_log.ts",
    from: 'entry = this.journal.append("type" in body ? this.#redacted(body) : body);',
    to: `entry = "type" in body && body.type === "call.intent"
        ? { v: 1, seq: this.journal.lastSeq, ts: this.#clock.now(), synced: 0, ...body }
        : this.journal.append(body);`,
  },
  {
    name: "no batch sync before a call leaves",
    core: { suite: "one crash", every: 11 },
    file: "src/kernel/gate.ts",
    from: `if (binding.effect !== "read") await log.barrier(intentSeq);`,
    to: "await Promise.resolve(intentSeq);",
  },
  {
    name: "a person's write leaves before its intent is durable",
    suite: "one crash",
    file: "src/kernel/operator_gate.ts",
    from: `if (binding.effect !== "read") await log.barrier(intent.seq);`,
    to: "await Promise.resolve(intent.seq);",
  },
  {
    name: "a person's write is told before its result is durable",
    suite: "one crash",
    file: "src/kernel/operator_gate.ts",
    from: "await this.#deps.log.barrier(seq);",
    to: "await Promise.resolve(seq);",
  },
  {
    name: "no sync before a result is shown",
    core: { suite: "one crash", every: 11 },
    file: "src/kernel/run_log.ts",
    from: "this.#waiting.splice(after + 1, 0, { seq, show });",
    to: "if (after < seq) return show();",
  },
  {
    name: "no checksum is compared",
    core: { suite: "a flipped bit in the last batch", every: 11 },
    file: "src/journal/line.ts",
    from: "return crc32(bytes.subarray(0, end)) === crc;",
    to: "return crc32(bytes.subarray(0, end)) >= 0 || crc > 0;",
  },
  {
    name: "no lease is taken",
    core: { suite: "two resumes at once", every: 1 },
    file: "src/journal/lease.ts",
    from: `if (file.tryLock("exclusive") && file.isCurrent()) return file;`,
    to: "if (file.isCurrent()) return file;",
  },
  {
    name: "a resume settles nothing",
    file: "src/kernel/resume.ts",
    from:
      "const undecided = await settleAll(kernel, settler, { ledger, rules: request.rules, observer });",
    to: "const undecided: OpenCall[] = [];",
  },
  {
    name: "a repeat has the attempt of what it repeats",
    file: "src/agent/agent_program.ts",
    from: "pending.attempt = entry.attempt + 1;",
    to: "pending.attempt = entry.attempt;",
  },
  {
    name: "a write is repeated like a read",
    file: "src/policy/settle.ts",
    from: `return effect === "read" || effect === "idempotent";`,
    to: `return effect !== "destructive";`,
  },
  {
    name: "the end is shown before it is durable",
    file: "src/kernel/runner.ts",
    from: "      await log.barrier(entry.seq);\n      const { end } = state.ledger.state;",
    to: "      await Promise.resolve(entry.seq);\n      const { end } = state.ledger.state;",
  },
  {
    name: "a start is shown before it is durable",
    file: "src/kernel/launch.ts",
    from: "await written(log.barrier(entry.seq), STARTED);",
    to: "await Promise.resolve(entry.seq);",
  },
  {
    name: "a resume is shown before it is durable",
    file: "src/kernel/resume.ts",
    from: "await log.barrier(log.journal.lastSeq);",
    to: "await Promise.resolve();",
  },
  {
    name: "a failed sync is taken for a good one",
    file: "src/journal/file_journal.ts",
    from: "this.#goodBytes = this.#durableBytes;\n      this.#poison(thrown);",
    to: "this.#durableSeq = covered;\n      void thrown;",
    suite: "a disk that fails",
  },
  {
    name: "a doubtful tail is cut unasked",
    file: "src/journal/cut.ts",
    from: "if (!damage.endedInNewline || acceptCut) return;",
    to: "if (!damage.endedInNewline || acceptCut || run !== undefined) return;",
    suite: "a flipped bit in the last batch",
  },
  {
    name: "numbers of turns that were cut are used again",
    file: "src/agent/agent_program.ts",
    from: "state.turn += entry.records;",
    to: "state.turn += 0 * entry.records;",
    suite: "a flipped bit in the last batch",
  },
  {
    name: "calls whose intent was cut count as never sent",
    file: "src/kernel/take_cut.ts",
    from: `if (action.kind !== "call" || ledger.hasStarted(action.key)) continue;`,
    to: `if (action.kind !== "exit" || true) continue;`,
    suite: "a flipped bit in the last batch",
  },
  {
    name: "a repair forgets what it cut off",
    file: "src/journal/repair.ts",
    from: "const lost = endedInNewline(rangeOf(file, keptBytes, file.size()));",
    to: "const lost = rangeOf(file, keptBytes, keptBytes);",
    suite: "a flipped bit before the last batch",
  },
  {
    name: "a repair leaves the damage in",
    file: "src/journal/repair.ts",
    from: "if (bySeq.size === 0) yield* rangeOf(file, 0, keptBytes);",
    to: "if (bySeq.size === 0) yield* rangeOf(file, 0, file.size());",
    suite: "a flipped bit before the last batch",
  },
  {
    name: "a pid is given twice",
    file: "src/kernel/pids.ts",
    from: "      return last + 1;",
    to: "      return Math.max(last, 1);",
  },
  {
    name: "an answer is taken though its call was settled",
    file: "src/kernel/gate.ts",
    from: "        open?.attempt === action.attempt && open.cause !== undefined;",
    to: "        (open === undefined || open.attempt === action.attempt);",
  },
  {
    name: "no limit is kept",
    file: "src/policy/limits.ts",
    from: "return limit !== undefined && used >= limit ?",
    to: "return limit !== undefined && used > 1e9 ?",
  },
  {
    name: "a child is made before its intent is durable",
    file: "src/kernel/gate.ts",
    from:
      "    await log.barrier(intentSeq);\n    if (log.failure) throw log.failure;\n    if (signal.aborted) return",
    to:
      "    await Promise.resolve();\n    if (log.failure) throw log.failure;\n    if (signal.aborted) return",
    suite: "one crash",
    scenario: "gent",
  },
  {
    name: "a child is taken up under another run id",
    file: "src/kernel/gate.ts",
    from: "const runId = ledger.openChild(action.call);",
    to: "const runId = ledger.openChild(action.call) && this.#deps.children.newRunId();",
    suite: "one crash",
    scenario: "gent",
  },
  {
    name: "a child that can't be written is told as one that failed",
    file: "src/daemon/child_host.ts",
    from: 'error.code === "INTERRUPTED" || error.exitCode === EXIT_JOURNAL;',
    to: 'error.code === "INTERRUPTED";',
    suite: "a disk that fails",
    scenario: "gent",
  },
  {
    name: "a journal that fails ends the children",
    file: "src/kernel/runner.ts",
    from: 'const UNWRITTEN: Stop = { kind: "suspend", reason: "interrupted" };',
    to: 'const UNWRITTEN: Stop = { kind: "kill", signal: "TERM" };',
    suite: "a disk that fails",
    scenario: "gent",
  },
  {
    name: "a fork makes children anew that have ended",
    file: "src/kernel/fork.ts",
    from: "if (await isOver(kernel, runId, repeatsFailed)) continue;",
    to: "",
    suite: "a fork after a crash",
    scenario: "gent",
  },
  {
    name: "a fork takes over ends that its source goes on from",
    file: "src/kernel/fork.ts",
    from: 'return status === "completed" || !repeatsFailed;',
    to: 'return status !== "" || !repeatsFailed;',
    schedules: 400,
  },
  {
    name: "a fork is resumed under its source's run id",
    file: "src/kernel/fork.ts",
    from: "return { ...body, run_id: runId, pid, forked_from:",
    to: "return { ...body, pid, forked_from:",
    suite: "a fork after a crash",
    scenario: "parallel",
  },
  {
    name: "a removal takes children before their parent",
    file: "src/daemon/garbage.ts",
    from: "if (trees.isOwned(run.runId) || trees.isHeld(run.runId)) continue;",
    to: "",
    suite: "a removal of old runs",
    scenario: "gent",
  },
  {
    name: "a checkpoint forgets what was started",
    file: "src/kernel/ledger.ts",
    from: "this.#started = new Set(saved.started);",
    to: "this.#started = new Set();",
    suite: "checkpoints of every size",
    scenario: "a",
  },
  {
    name: "what a failed sync gave up stays given up",
    file: "src/journal/open.ts",
    from: "file.rewrite(offset, bytes);",
    to: "",
    schedules: 400,
  },
  {
    name: "an end below is taken though the machine may lose it",
    file: "src/daemon/below.ts",
    from: 'view.state === "dead" ? await readDurably(storage, folder, kernel) : view.ledger',
    to: "view.ledger",
    suite: "a kill, and a crash",
    scenario: "gent",
  },
  {
    name: "a completed node runs again after a resume",
    file: "src/workflow/workflow_state.ts",
    from: "if (!state.exited) return;\n  state.exited = false;\n  state.round += 1;",
    to: "state.exited = false;\n  state.round += 1;\n  state.freshRound = state.round;",
    suite: "one crash",
    scenario: "workflow",
  },
  {
    name: "a resume gives failed nodes new tries",
    file: "src/workflow/workflow_state.ts",
    from: "if (!state.exited) return;\n  state.exited = false;",
    to: "state.exited = false;",
    suite: "one crash",
    scenario: "fails for good",
  },
  {
    name: "a node begins before what it waits for is over",
    file: "src/workflow/survey.ts",
    from: "if (before.some(({ status }) => !isOver(status))) return",
    to: 'if (before.some(({ status }) => status === "pending")) return',
    suite: "one crash",
    scenario: "diamond",
  },
  {
    name: "a crash makes the old end of a child that is taken up again its new one",
    file: "src/kernel/ledger.ts",
    from: "...(continues === undefined ? {} : { continues, childSpawned: true as const }),",
    to: "",
    suite: "one crash",
    scenario: "fails, and is taken up again",
  },
  {
    name: "nodes at work take no place",
    file: "src/workflow/workflow_program.ts",
    from: "const places = blueprint.workflow.maxParallel - running.length;",
    to: "const places = blueprint.workflow.maxParallel;",
    suite: "one crash",
    scenario: "list",
  },
];
