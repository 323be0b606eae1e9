/**
 * Real `kill -9` of rnix at random moments of a 60-call run, against a server that writes a line per call (acceptance A4).
 *
 * Every round: start or resume, kill after a random time, look for survivors 2 s later, look at what `ps` and `resume` say, and go on until all 60 calls are done. As a script: `deno run -A tests/system/kill_rounds.ts [rounds] [seed]`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";

const ROOT = new URL("../../", import.meta.url).pathname;
const CALLS = 60;
const ORPHANS_MS = 2_000;

export interface RoundsReport {
  rounds: number;
  kills: number;
  /** Kills that left a call with an unknown outcome. */
  unknown: number;
  /** Of those, how many had taken effect. */
  unknownDone: number;
  completed: number;
  survivors: number;
}

interface Answer {
  ok: boolean;
  data?: {
    run_id: string;
    exit_code: number;
    unknown_calls?: { call: string; tool: string }[];
    processes?: {
      run_id: string;
      state: string;
      exit_code?: number;
      unknown_calls?: { call: string }[];
    }[];
  };
}

/** A seeded source of numbers in [0, 1). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Stage {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-kill-" }));
  readonly #env: { [name: string]: string };

  constructor() {
    const scratch = join(this.folder, "scratch");
    Deno.mkdirSync(scratch);
    // Every server gets TMPDIR, so it marks all that a run has started.
    this.#env = { RNIX_HOME: join(this.folder, "home"), TMPDIR: scratch, NO_COLOR: "1" };
    Deno.mkdirSync(join(this.folder, "agent"));
    Deno.writeTextFileSync(join(this.folder, "agent", "agent.yaml"), manifest(this.ledger));
    Deno.writeTextFileSync(join(this.folder, "agent", "script.yaml"), SCRIPT);
  }

  get ledger(): string {
    return join(this.folder, "ledger");
  }

  rnix(...args: string[]): Deno.ChildProcess {
    return new Deno.Command(join(ROOT, "scripts/rnix"), {
      args: ["--json", ...args],
      cwd: this.folder,
      env: this.#env,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  async ask(...args: string[]): Promise<{ code: number; answer: Answer }> {
    const { code, stdout, stderr } = await this.rnix(...args).output();
    const text = new TextDecoder().decode(stdout);
    assert.notEqual(text, "", new TextDecoder().decode(stderr));
    return { code, answer: JSON.parse(text) };
  }

  lines(): string[] {
    try {
      return Deno.readTextFileSync(this.ledger).split("\n").filter((line) => line !== "");
    } catch {
      return [];
    }
  }

  /** Processes that a run of this stage has started and that are still there, zombies aside. */
  async survivors(): Promise<string[]> {
    const script =
      'for f in $(grep -lsF "$1" /proc/[0-9]*/environ); do p=${f#/proc/}; p=${p%%/*}; ' +
      '[ "$p" = $$ ] || echo "$p $(tr "\\0" " " < /proc/$p/cmdline)"; done';
    const { stdout } = await new Deno.Command("sh", {
      args: ["-c", script, "sh", `TMPDIR=${this.#env["TMPDIR"]}`],
    }).output();
    return new TextDecoder().decode(stdout).split("\n").filter((line) =>
      /\d+ \S/.test(line) && !line.includes("main.ts")
    );
  }

  remove(): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

const SCRIPT = `turns:
  - repeat: ${CALLS}
    calls: [{ tool: pay, input: { note: "n\${{ index }}", delay_ms: 12, after_ms: 12 } }]
  - text: All paid.
`;

/** A server that won't go, one behind npx, one whose grandchild has its own session. */
function manifest(ledger: string): string {
  const deno = Deno.execPath();
  const server = join(ROOT, "tests/servers/ledger_server.ts");
  const run = `${deno} run --quiet -A ${server} ${ledger}`;
  const everything = "@modelcontextprotocol/server-everything@2026.8.31";
  return `name: payer
instructions: Pay.
models: { provider: scripted, script: script.yaml }
mcp:
  servers:
    ledger:
      command: sh
      args: ["-c", "setsid sleep 600 & exec ${run} --ignore-term --ignore-eof"]
      tools: { allow: [pay] }
    wrapped:
      command: sh
      args: ["-c", "${run}-other & wait"]
      tools: { allow: [peek] }
      required: false
      startup_timeout: 300ms
    everything:
      command: npx
      args: ["-y", "${everything}"]
      startup_timeout: 2m
      tools: { allow: [echo] }
budget: { turns: 100 }
`;
}

/** Kills rnix `rounds` times, over as many runs as that takes, and lets every run complete. */
export async function killRounds(rounds: number, seed: number): Promise<RoundsReport> {
  const random = randomNumbers(seed);
  const report = { rounds, kills: 0, unknown: 0, unknownDone: 0, completed: 0, survivors: 0 };
  while (report.kills < rounds) {
    const stage = new Stage();
    try {
      await oneRun(stage, report, random);
    } finally {
      stage.remove();
    }
  }
  return report;
}

async function oneRun(stage: Stage, report: RoundsReport, random: () => number): Promise<void> {
  let runId: string | undefined;
  let rules: string[] = [];
  for (;;) {
    const args = runId === undefined ? ["run", "agent", "Pay"] : ["resume", runId, ...rules];
    const child = stage.rnix(...args);
    const killed = report.kills < report.rounds && await killLater(child, random);
    if (!killed) {
      const { code, stdout, stderr } = await child.output();
      const shown = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      assert.equal(code, 0, shown);
      break;
    }
    report.kills += 1;
    await Promise.all([child.status, child.stdout.cancel(), child.stderr.cancel()]);
    await new Promise((resolve) => setTimeout(resolve, ORPHANS_MS));
    const left = await stage.survivors();
    report.survivors += left.length;
    assert.deepEqual(left, [], `survivors after kill ${report.kills}`);
    const found = await lookAround(stage, runId);
    // Killed after its end had been made durable, while its servers were being closed.
    if (found === "ended") break;
    runId = found?.runId;
    rules = runId === undefined ? [] : await decide(stage, runId, report);
  }
  checkLedger(stage);
  report.completed += 1;
}

/** Whether rnix was killed before it ended by itself. */
async function killLater(child: Deno.ChildProcess, random: () => number): Promise<boolean> {
  const delayMs = 150 + random() * 3_500;
  const ended = child.status.then(() => true);
  const waited = new Promise<false>((resolve) => setTimeout(() => resolve(false), delayMs));
  if (await Promise.race([ended, waited])) return false;
  child.kill("SIGKILL");
  return true;
}

/** What `ps` says after a kill: the run is there, suspended, interrupted. */
async function lookAround(
  stage: Stage,
  runId: string | undefined,
): Promise<{ runId: string } | "ended" | undefined> {
  const { code, answer } = await stage.ask("ps", "-a");
  assert.equal(code, 0);
  const [row] = answer.data?.processes ?? [];
  if (row === undefined) {
    assert.equal(runId, undefined, "the run has disappeared");
    assert.deepEqual(stage.lines(), [], "effects of a run that is not listed");
    return undefined;
  }
  if (row.state === "dead") {
    assert.equal(row.exit_code, 0);
    return "ended";
  }
  assert.equal(row.state, "suspended");
  return { runId: row.run_id };
}

/** Resumes without a decision: either there is nothing unknown, or exit 5 names the calls. Gives the decisions a person would take who looks at the ledger. */
async function decide(stage: Stage, runId: string, report: RoundsReport): Promise<string[]> {
  const { answer } = await stage.ask("ps", "-a");
  const unknown = answer.data?.processes?.[0]?.unknown_calls ?? [];
  if (unknown.length === 0) return [];
  report.unknown += 1;
  const asked = await stage.ask("resume", runId);
  assert.equal(asked.code, 5, JSON.stringify(asked.answer));
  assert.equal(asked.answer.ok, false);
  assert.deepEqual(
    asked.answer.data?.unknown_calls?.map(({ call }) => call),
    unknown.map((u) => u.call),
  );
  return unknown.map(({ call }) => {
    const done = stage.lines().some((line) => line.endsWith(`/${call}`));
    if (done) report.unknownDone += 1;
    return `--unknown=${call}:${done ? "done" : "retry"}`;
  });
}

function checkLedger(stage: Stage): void {
  const notes = stage.lines().map((line) => line.split(" ")[1]);
  assert.equal(new Set(notes).size, notes.length, `a call was made twice: ${notes}`);
  assert.equal(notes.length, CALLS);
}

if (import.meta.main) {
  const [rounds = "30", seed = String(Date.now() % 100_000)] = Deno.args;
  console.log(`${rounds} kills, seed ${seed}`);
  console.log(JSON.stringify(await killRounds(Number(rounds), Number(seed))));
}
