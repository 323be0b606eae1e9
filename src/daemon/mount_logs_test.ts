import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { KernelStage, ServerDouble } from "../../tests/kernel/kernel_stage.ts";
import { taking } from "../../tests/kernel/server_double.ts";
import type { LogLine, LogReading } from "../base/operations.ts";
import { Pids } from "../kernel/pids.ts";
import { StderrLog } from "../mcp/stderr_log.ts";
import { LOOK_MS } from "./followed_lines.ts";
import { mountLogLines } from "./mount_logs.ts";
import { Runs } from "./runs.ts";

const encoder = new TextEncoder();

/** A run's logs as its servers write them, and reading them. */
class LogStage {
  readonly kernel: KernelStage;

  constructor(kernel: KernelStage) {
    this.kernel = kernel;
  }

  logOf(runId: string, server = "world", bytesMax?: number): StderrLog {
    return new StderrLog({
      storage: this.kernel.disk,
      path: `/state/runs/${runId}/mounts/${server}.stderr.log`,
      ...(bytesMax === undefined ? {} : { bytesMax }),
    });
  }

  read(mount: string, reading?: LogReading): AsyncGenerator<LogLine> {
    const { disk, clock } = this.kernel;
    const runs = new Runs(disk, new Pids(disk, clock, "/state"), "/state");
    return mountLogLines({ storage: disk, runs, clock }, mount, reading);
  }

  async texts(mount: string, reading?: LogReading): Promise<string[]> {
    return await all(this.read(mount, reading));
  }
}

async function all(lines: AsyncIterable<LogLine>): Promise<string[]> {
  const found: string[] = [];
  for await (const { source, text } of lines) found.push(`[${source}] ${text}`);
  return found;
}

async function write(log: StderrLog, text: string): Promise<void> {
  await log.write(encoder.encode(text));
}

Deno.test("each line tells who wrote it, and a server can't write in another's name", async () => {
  const kernel = new KernelStage({ servers: [new ServerDouble()], replies: ["Done."] });
  const { runId } = await kernel.run();
  const stage = new LogStage(kernel);
  const log = stage.logOf(runId);
  await write(log, "Starting\n[rnix] all is well\n\u001b[2J\n");
  await log.note("[stdout] noise");
  await log.note("[rnix] 3 lines were left out");
  await write(log, "no end");
  await log.close();
  const told = [
    "[stderr] Starting",
    "[stderr] [rnix] all is well",
    "[stderr] \u001b[2J",
    "[stdout] noise",
    "[rnix] 3 lines were left out",
    "[stderr] no end",
  ];
  assert.deepEqual(await stage.texts("1-world"), told);
  assert.deepEqual(await stage.texts("world"), told, "by name: the newest run that has it");
  assert.deepEqual(await stage.texts("1-world", { lines: 2 }), told.slice(-2));
  assert.deepEqual(await stage.texts("1-world", { lines: 0 }), []);
  assert.deepEqual(await stage.texts("1-world", { lines: 99 }), told);
});

Deno.test("a log is followed while its run is at work, over a full file, to the run's end", async () => {
  const kernel = new KernelStage({
    servers: [new ServerDouble({ tools: { pay: { does: taking(10_000) } } })],
    replies: [[{ tool: "world__pay" }], "Done."],
  });
  const live = await kernel.start();
  await kernel.clock.advance(50);
  const stage = new LogStage(kernel);
  const log = stage.logOf(live.runId, "world", 60);
  await write(log, "one\ntwo\nthree\n");
  const found = stage.texts("1-world", { follow: true, lines: 1 });
  const expected = ["[stderr] three"];
  for (let line = 0; line < 12; line += 1) {
    await kernel.clock.advance(LOOK_MS / 3);
    await write(log, `a line of some length ${line}\n`);
    expected.push(`[stderr] a line of some length ${line}`);
  }
  await kernel.clock.run(live.done);
  await kernel.clock.advance(2 * LOOK_MS);
  assert.deepEqual(await found, expected);
});

Deno.test("a follower that has had enough leaves the run alone", async () => {
  const kernel = new KernelStage({
    servers: [new ServerDouble({ tools: { pay: { does: taking(10_000) } } })],
    replies: [[{ tool: "world__pay" }], "Done."],
  });
  const live = await kernel.start();
  await kernel.clock.advance(50);
  const stage = new LogStage(kernel);
  await write(stage.logOf(live.runId), "one\n");
  const stop = new AbortController();
  const found = stage.texts("1-world", { follow: true, signal: stop.signal });
  await kernel.clock.advance(50);
  stop.abort();
  assert.deepEqual(await found, ["[stderr] one"]);
  assert.equal((await kernel.clock.run(live.done)).end.state, "exited");
});

Deno.test("the last line of a server that could not be mounted is why; of one that came up later it isn't", async () => {
  const server = new ServerDouble({
    tools: { pay: { does: taking(1_000) } },
  });
  const kernel = new KernelStage({
    servers: [server],
    onUnknown: "skip",
    replies: [[{ tool: "world__pay" }], "Done."],
  });
  const live = await kernel.start();
  await kernel.clock.advance(100);
  kernel.kill();
  server.fails = new SysError(
    "DRIVER",
    "It exited with 1; last lines of its stderr:\n  cannot find module",
    { hint: "Look at its settings" },
  );
  await kernel.resumeToEnd(live.runId);
  const stage = new LogStage(kernel);
  await write(stage.logOf(live.runId), "cannot find module\n");
  const failed = [
    "[stderr] cannot find module",
    "[rnix] It was not mounted: [DRIVER] It exited with 1 (Look at its settings)",
  ];
  assert.deepEqual(await stage.texts("2-world"), failed);
  assert.deepEqual(await stage.texts("2-world", { follow: true }), failed);
  server.fails = undefined;
  await kernel.resumeToEnd(live.runId);
  assert.deepEqual(await stage.texts("2-world"), ["[stderr] cannot find module"]);
});

Deno.test("a server that failed before it had a log has its failure", async () => {
  const error = new SysError("INVALID", "Variable TOKEN isn't set");
  const kernel = new KernelStage({
    servers: [new ServerDouble()],
    unavailable: [{ server: "unset", required: false, error }],
    replies: ["Done.", "Done."],
  });
  const { runId } = await kernel.run();
  await write(new LogStage(kernel).logOf(runId), "here\n");
  await kernel.run();
  const stage = new LogStage(kernel);
  const failed = ["[rnix] It was not mounted: [INVALID] Variable TOKEN isn't set"];
  assert.deepEqual(await stage.texts("1-unset"), failed);
  assert.deepEqual(await stage.texts("unset"), failed);
  assert.deepEqual(await stage.texts("2-world"), []);
});

Deno.test("a mount that never was is NOT_FOUND with those that were, exit 2", async () => {
  const kernel = new KernelStage({ servers: [new ServerDouble()], replies: ["Done."] });
  const { runId } = await kernel.run();
  const stage = new LogStage(kernel);
  await write(stage.logOf(runId, "files"), "x\n");
  for (const [mount, known] of [["1-nosuch", "1-files, 1-world"], ["nosuch", "files, world"]]) {
    await assert.rejects(stage.texts(mount ?? ""), {
      code: "NOT_FOUND",
      message: `There is no mount "${mount}" with a log`,
      hint: `Known: ${known}`,
      exitCode: 2,
    });
  }
  await assert.rejects(stage.texts("7-world"), { code: "NOT_FOUND", exitCode: 2 });
});
