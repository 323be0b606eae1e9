/** Two of everything, with real processes: who has a run or a state folder has it alone, whatever files lie there and whoever's they were. */
import assert from "node:assert/strict";
import { systemClock } from "../src/base/clock.ts";
import { disk } from "../src/base/disk.ts";
import { openJournal, probeLease, verifyRun } from "../src/journal/mod.ts";
import { RUN_ID } from "./doubles/sample_entries.ts";
import { TerminalStage } from "./system/terminal_stage.ts";

const WRITER = new URL("./servers/journal_writer.ts", import.meta.url).pathname;
const LOST = /was replaced by someone else/;

/** Another process that appends to a run's journal as fast as it can. */
class Writer implements AsyncDisposable {
  readonly child: Deno.ChildProcess;
  /** What it said last before it ended by itself. */
  readonly ended: Promise<string>;
  readonly #reader: ReadableStreamDefaultReader<string>;

  constructor(folder: string) {
    this.child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-read", "--allow-write", WRITER, folder],
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.ended = new Response(this.child.stderr).text();
    this.#reader = this.child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Until it has written something more. */
  async wrote(): Promise<void> {
    const { done } = await this.#reader.read();
    assert.equal(done, false, "the writer ended by itself");
  }

  async gone(): Promise<string> {
    for (let read = await this.#reader.read(); !read.done;) read = await this.#reader.read();
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#reader.cancel().catch(() => {});
    await this.ended;
    await this.child.status;
  }
}

async function inTemporaryFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rnix-two-" });
  try {
    await work(`${folder}/runs/${RUN_ID}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function open(folder: string) {
  return openJournal(disk, folder, { clock: systemClock, osPid: Deno.pid, instance: "test" });
}

async function copyFolder(from: string, to: string): Promise<void> {
  const { success } = await new Deno.Command("cp", { args: ["-r", from, to] }).output();
  assert.ok(success);
}

Deno.test("[A15] a holder whose lock file is replaced writes nothing more, and another goes on", async () => {
  await inTemporaryFolder(async (folder) => {
    await using writer = new Writer(folder);
    await writer.wrote();
    Deno.removeSync(`${folder}/lock`);
    Deno.writeTextFileSync(`${folder}/lock`, "");
    assert.match(await writer.gone(), LOST);
    const { journal } = await open(folder);
    const { lastSeq } = journal;
    journal.append({ type: "signal", signal: "TERM", origin: "user" });
    await journal.close();
    const { ok, entries } = await verifyRun(disk, folder);
    assert.deepEqual([ok, entries], [true, lastSeq + 1]);
  });
});

Deno.test("[A19] a holder whose folder is restored from an older copy writes nothing into it", async () => {
  await inTemporaryFolder(async (folder) => {
    await using writer = new Writer(folder);
    await writer.wrote();
    await copyFolder(folder, `${folder}.copy`);
    await writer.wrote();
    Deno.renameSync(folder, `${folder}.old`);
    Deno.renameSync(`${folder}.copy`, folder);
    const restored = Deno.readFileSync(`${folder}/journal.jsonl`);
    assert.match(await writer.gone(), LOST);
    assert.deepEqual(Deno.readFileSync(`${folder}/journal.jsonl`), restored);
    const { journal } = await open(folder);
    await journal.close();
    assert.equal((await verifyRun(disk, folder)).ok, true);
  });
});

Deno.test("[C25] a lock file that names a living process means nothing once its holder is dead: its OS pid may be another's", async () => {
  await inTemporaryFolder(async (folder) => {
    {
      await using writer = new Writer(folder);
      await writer.wrote();
    }
    const reused = JSON.stringify({ os_pid: Deno.pid, instance: "writer" });
    Deno.writeTextFileSync(`${folder}/lock`, `${reused}\n`);
    assert.equal(await probeLease(disk, folder), undefined);
    const { journal } = await open(folder);
    await journal.close();
  });
});

Deno.test("[A15] of two resumes at once one goes on, the other is refused; the journal has one sequence", async () => {
  await using stage = new TerminalStage();
  stage.agent("waiter", "turns:\n  - delay: 8s\n    text: Done.\n");
  const first = await stage.rnix("run", "-d", "waiter");
  assert.equal(first.code, 0, first.stderr);
  const { os_pid } = await stage.data<{ os_pid: number }>("daemon", "status");
  Deno.kill(os_pid, "SIGKILL");
  const ends = await Promise.all([stage.rnix("resume", "1"), stage.rnix("resume", "1")]);
  assert.deepEqual(ends.map(({ code }) => code).sort(), [0, 2], ends[1]?.stderr);
  const refused = ends.find(({ code }) => code === 2);
  assert.match(refused?.stderr ?? "", /held by process \d+|at work/);
  const verified = await stage.rnix("journal", "verify", "1");
  assert.equal(verified.code, 0, verified.stderr);
});

Deno.test("one daemon serves a state folder, by whichever name it is reached", async () => {
  await using stage = new TerminalStage();
  const one = await stage.data<{ instance: string }>("daemon", "start");
  Deno.symlinkSync(stage.home, `${stage.folder}/other`);
  const env = { RNIX_HOME: `${stage.folder}/other` };
  const second = await stage.open(["daemon", "run"], { env }).ended;
  assert.equal(second.code, 1);
  assert.match(second.stderr, /Another daemon serves this state folder/);
  const other = await stage.open(["--json", "daemon", "status"], { env }).ended;
  assert.equal(JSON.parse(other.stdout).data.instance, one.instance);
});
