/** A place where rnix is killed: a home, eight runs on the ledger server, of which some are parents with two children that share it, and the means to look at what is there. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { removeFolder } from "../doubles/remove_folder.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const GONE_MS_MAX = 60_000;
const CALLS = 60;
/** Every so many-th run pays through two children. */
const TREE_EVERY = 3;
const CHILDREN = 2;
/** Payments of each child. */
const CHILD_CALLS = CALLS / CHILDREN;

/** A row of `ps --json`, as far as it is looked at. */
export interface Row {
  run_id: string;
  pid: number;
  ppid: number;
  state: string;
  reason?: string;
  intent: string;
  exit_code?: number;
}

/** One of the runs: which it is, and the client that follows it now. */
export interface Slot {
  index: number;
  client?: Deno.ChildProcess;
}

export class Stage {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-kill-" }));
  readonly slots: Slot[];

  constructor(runs: number) {
    this.slots = Array.from({ length: runs }, (_, index) => ({ index }));
    Deno.mkdirSync(this.scratch);
    for (const { index } of this.slots) Deno.mkdirSync(this.#folderOf(index));
    this.#write("payer", manifest("payer"), paying(CALLS));
    this.#write("child", manifest("child"), paying(CHILD_CALLS));
    const agents = "agents: [{ name: child, manifest: ../child }]\n";
    this.#write("parent", manifest("parent") + agents, STARTING);
  }

  #write(agent: string, manifest: string, script: string): void {
    Deno.mkdirSync(join(this.folder, agent));
    Deno.writeTextFileSync(join(this.folder, agent, "agent.yaml"), manifest);
    Deno.writeTextFileSync(join(this.folder, agent, "script.yaml"), script);
  }

  /** Every server gets TMPDIR, so it marks all that this stage's runs have started. */
  get scratch(): string {
    return join(this.folder, "scratch");
  }

  agent(slot: number): string {
    return join(this.folder, slot % TREE_EVERY === 0 ? "parent" : "payer");
  }

  /** In the run's own folder: whoever resumes it, and from wherever, its server finds its own. */
  ledger(slot: number): string {
    return join(this.#folderOf(slot), "ledger");
  }

  #folderOf(slot: number): string {
    return join(this.folder, `run-${slot}`);
  }

  rnix(args: string[], slot = 0): Deno.ChildProcess {
    return new Deno.Command(join(ROOT, "scripts/rnix"), {
      args: ["--json", ...args],
      cwd: this.#folderOf(slot),
      env: {
        RNIX_HOME: join(this.folder, "home"),
        TMPDIR: this.scratch,
        NO_COLOR: "1",
      },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
  }

  /** Runs that were started by hand; `children`: those that these have started. */
  async rows(which: "roots" | "children" = "roots"): Promise<Row[]> {
    const { stdout } = await new Deno.Command(join(ROOT, "scripts/rnix"), {
      args: ["--json", "ps", "-a"],
      env: { RNIX_HOME: join(this.folder, "home") },
    }).output();
    const answer = JSON.parse(new TextDecoder().decode(stdout));
    assert.equal(answer.ok, true, JSON.stringify(answer));
    const rows: Row[] = answer.data.processes;
    return rows.filter(({ intent }) => intent.startsWith("Pay ") === (which === "roots"));
  }

  /** The daemon's record; undefined while there is none. */
  daemon(): { os_pid: number; instance: string } | undefined {
    try {
      return JSON.parse(Deno.readTextFileSync(join(this.folder, "home/state/daemon.json")));
    } catch {
      return undefined;
    }
  }

  /** OS pids of living processes whose environment holds `text`. */
  async living(text: string): Promise<string[]> {
    const script =
      'for f in $(grep -lsF "$1" /proc/[0-9]*/environ); do p=${f#/proc/}; p=${p%%/*}; ' +
      '[ "$p" = $$ ] || echo "$p $(tr "\\0" " " < /proc/$p/cmdline 2>/dev/null)"; done';
    const { stdout } = await new Deno.Command("sh", { args: ["-c", script, "sh", text] }).output();
    return new TextDecoder().decode(stdout).split("\n")
      .filter((line) => /\d+ \S/.test(line) && !line.includes("main.ts"));
  }

  /** Waits until no process has `text` in its environment; fails when one stays for longer than a sweep takes on a loaded machine. */
  async noneLiving(text: string, what: string): Promise<void> {
    const endMs = performance.now() + GONE_MS_MAX;
    for (let left = await this.living(text); left.length > 0; left = await this.living(text)) {
      assert.ok(performance.now() < endMs, `${what}: ${left.join("; ")}`);
    }
  }

  lines(slot: number): string[] {
    try {
      return Deno.readTextFileSync(this.ledger(slot)).split("\n").filter((line) => line !== "");
    } catch {
      return [];
    }
  }

  /** Holds a finished run's journal, or those of its children, against its ledger: what was done once, what was declared unknown. */
  check(row: Row, children: readonly Row[]): { unknown: number } {
    const slot = Number(row.intent.split(" ").at(-1));
    const own = children.filter(({ ppid }) => ppid === row.pid);
    assert.equal(own.length, slot % TREE_EVERY === 0 ? CHILDREN : 0, `children of ${row.intent}`);
    for (const child of own) assert.equal(child.exit_code, 0, JSON.stringify(child));
    const done = new Set<string>();
    const skipped = new Set<string>();
    for (const { run_id } of own.length > 0 ? own : [row]) {
      const text = Deno.readTextFileSync(
        join(this.folder, "home/state/runs", run_id, "journal.jsonl"),
      );
      for (const line of text.trimEnd().split("\n")) {
        const entry = JSON.parse(line);
        const key = `${run_id}/${entry.call}`;
        if (entry.type === "call.result" && entry.outcome === "ok") done.add(key);
        if (entry.type === "call.settled" && entry.how === "skip") skipped.add(key);
      }
    }
    const ledger = this.lines(slot).map((line) => line.split(" ").at(-1) ?? "");
    assert.equal(new Set(ledger).size, ledger.length, `done twice: ${ledger}`);
    for (const key of done) assert.ok(ledger.includes(key), `lost: ${key}`);
    for (const key of ledger) {
      assert.ok(done.has(key) || skipped.has(key), `done but not recorded: ${key}`);
    }
    assert.equal(done.size + skipped.size, CALLS);
    return { unknown: skipped.size };
  }

  async remove(): Promise<void> {
    const daemon = this.daemon();
    await this.rnix(["daemon", "stop"]).status;
    if (daemon !== undefined) await this.noneLiving(daemon.instance, "left behind at the end");
    await removeFolder(this.folder);
  }
}

/** So many payments, one after another. */
const paying = (calls: number): string =>
  `turns:
  - repeat: ${calls}
    calls: [{ tool: pay, input: { note: "n\${{ index }}", delay_ms: 20, after_ms: 20 } }]
  - text: All paid.
`;

/** Two children at once. */
const STARTING = `turns:
  - calls: [{ tool: agent__child, input: { intent: One } }, { tool: agent__child, input: { intent: Two } }]
  - text: All paid.
`;

/** A server that won't go, behind a shell that has put a grandchild into a session of its own. */
function manifest(name: string): string {
  const server = join(ROOT, "tests/servers/ledger_server.ts");
  const run = `${Deno.execPath()} run --quiet -A ${server}`;
  return `name: ${name}
instructions: Pay.
models: { provider: scripted, script: script.yaml }
on_unknown: skip
mcp:
  servers:
    ledger:
      command: sh
      args: ["-c", "setsid sleep 600 & exec ${run} ledger --ignore-term --ignore-eof"]
      startup_timeout: 1m
      tools: { allow: [pay] }
budget: { turns: 100 }
`;
}
