import assert from "node:assert/strict";
import { sleep } from "../../src/base/clock.ts";
import { isJsonObject, type Json } from "../../src/base/json.ts";
import { keptInPart } from "../doubles/faulty_disk.ts";
import { KernelStage, ServerDouble } from "./kernel_stage.ts";
import { type PlannedReply, REPLY_MS } from "./model_double.ts";
import { lost, ok, taking } from "./server_double.ts";

const DONE = "Done.";
const LINES = Array.from({ length: 2_000 }, (_, line) => `line ${line}`).join("\n");
const LIMIT = 300;
const MARK = /ReadResult gives the rest: (\{.*?\}) …\]/;

function server(options: { sensitive?: string[] } = {}) {
  return new ServerDouble({
    tools: {
      get: { effect: "read", does: () => ok(LINES) },
      pay: { does: taking(1_000) },
      short: { effect: "read", does: () => ok("short") },
    },
    outputTokensMax: LIMIT,
    ...options,
  });
}

/** Text of the results that a request ends with. */
function lastResults(stage: KernelStage, request: number): string[] {
  const message = stage.model.asked[request]?.prompt.messages.at(-1);
  return message?.role === "tool" ? message.results.map(({ content }) => textOf(content)) : [];
}

function textOf(content: readonly Json[]): string {
  return content.map((block) => isJsonObject(block) ? String(block["text"]) : "").join("");
}

function toolsOf(stage: KernelStage, request: number): string[] {
  return stage.model.asked[request]?.tools.map(({ modelName }) => modelName) ?? [];
}

/** The arguments that a mark or a note tells. */
function placeIn(text: string): { result: string; offset: number } {
  const [, place = ""] = MARK.exec(text) ?? assert.fail(text);
  return JSON.parse(place);
}

/** A run whose model reads what the replies before it told. */
async function readerOf(
  stage: KernelStage,
): Promise<{ runId: string; place: { result: string; offset: number } }> {
  stage.model.replies.push([{ tool: "world__get" }], "Half.");
  const { runId } = await stage.run();
  return { runId, place: placeIn(lastResults(stage, 1)[0] ?? "") };
}

Deno.test("[B41] what was cut of a result is read in pieces, until all of it has been seen", async () => {
  const stage = new KernelStage({ servers: [server()] });
  const { runId, place } = await readerOf(stage);
  const [cut = ""] = lastResults(stage, 1);
  let whole = cut.slice(0, cut.search(/\n\n\[… cut/));
  assert.equal(place.offset, whole.length);
  for (let offset: number | undefined = place.offset; offset !== undefined;) {
    stage.model.replies.push([{ tool: "ReadResult", input: { ...place, offset } }], "More.");
    await stage.resumeToEnd(runId, { intent: "Read on" });
    const [piece = ""] = lastResults(stage, stage.model.asked.length - 1);
    const [note, next] = /\n\[… characters .*?(?:offset (\d+)|the end) …\]$/.exec(piece) ??
      assert.fail(piece);
    whole += piece.slice(0, -note.length);
    offset = next === undefined ? undefined : Number(next);
  }
  assert.equal(whole, LINES);
});

Deno.test("what reads cut results is offered from the request on that follows the first one", async () => {
  const stage = new KernelStage({
    servers: [server()],
    replies: [
      [{ tool: "world__short" }],
      [{ tool: "world__get" }],
      [{ tool: "world__short" }],
      DONE,
    ],
  });
  await stage.run();
  const offered = [0, 1, 2, 3].map((request) => toolsOf(stage, request).includes("ReadResult"));
  assert.deepEqual(offered, [false, false, true, true]);
  assert.equal(
    stage.model.asked[2]?.tools,
    stage.model.asked[3]?.tools,
    "one list while nothing changes",
  );
});

Deno.test("a resumed run offers what reads cut results where the run before it did, and asks the same bytes", async () => {
  const replies: PlannedReply[] = [[{ tool: "world__get" }, { tool: "world__pay" }], DONE];
  const whole = new KernelStage({ servers: [server()], replies: [...replies] });
  const one = await whole.run();
  const cut = new KernelStage({ servers: [server()], onUnknown: "retry", replies: [...replies] });
  const live = await cut.start();
  await cut.clock.advance(100);
  cut.kill();
  await cut.resumeToEnd(live.runId);
  const hashes = async (stage: KernelStage, runId: string) =>
    (await stage.entriesOf(runId, "model.request")).map(({ request_sha256 }) => request_sha256);
  assert.deepEqual(await hashes(cut, live.runId), await hashes(whole, one.runId));
  assert.deepEqual(toolsOf(cut, 1), toolsOf(whole, 1));
});

Deno.test("a call that reads a result is journaled as any other, of class read, under /proc/self", async () => {
  const stage = new KernelStage({ servers: [server()] });
  const { runId, place } = await readerOf(stage);
  stage.model.replies.push([{ tool: "ReadResult", input: { ...place } }], DONE);
  const { ledger } = await stage.resumeToEnd(runId, { intent: "Read on" });
  const intent = (await stage.entriesOf(runId, "call.intent")).at(-1);
  assert.deepEqual(
    [intent?.tool, intent?.device, intent?.effect],
    ["ReadResult", "/proc/self/results", "read"],
  );
  const opened = stage.traces.findLast(({ syscall }) => syscall === "Open");
  assert.equal(opened?.args["path"], `/proc/${ledger.pid}/results`);
  assert.equal(ledger.state.totals.tool_calls, 2);
  const results = await stage.entriesOf(runId, "call.result");
  const last = results.at(-1);
  assert.ok(last?.outcome === "ok" && last.whole === undefined, "a piece isn't cut again");
});

Deno.test("a read of a result that a crash cut off is made again before the next request", async () => {
  const stage = new KernelStage({ servers: [server()], onUnknown: "retry" });
  const { runId, place } = await readerOf(stage);
  stage.model.replies.push([
    { tool: "world__pay" },
    { tool: "ReadResult", input: { ...place } },
  ], DONE);
  const live = await stage.resume(runId, { intent: "Read on" });
  await stage.clock.advance(REPLY_MS);
  // Its result was written, but isn't durable yet.
  const dead = stage.disk;
  stage.disk = dead.crash(keptInPart(0));
  dead.stop();
  await stage.resumeToEnd(live.runId);
  const results = lastResults(stage, stage.model.asked.length - 1);
  assert.match(results[1] ?? "", /^\s*line \d+\nline/);
  const sent = (await stage.entriesOf(runId, "call.intent")).filter(({ tool }) =>
    tool === "ReadResult"
  );
  assert.deepEqual(sent.map(({ attempt }) => attempt), [1, 2]);
});

Deno.test("only results of this run that were cut can be read: no other blob, no name of another run, no path", async () => {
  const stage = new KernelStage({ servers: [server()], intent: "y".repeat(70_000) });
  const { runId } = await readerOf(stage);
  const folder = `/state/runs/${runId}/blobs`;
  const others = (await stage.disk.list(folder)).map((name) => ({ result: name.slice(0, 12) }));
  const [kept] = (await stage.fold(runId)).ledger.keptResults();
  const refused = [
    ...others.filter(({ result }) => !kept?.sha256.startsWith(result)),
    { result: "" },
    { result: "../spec" },
    { result: "0123456789ab" },
  ];
  assert.ok(refused.length >= 5, "the spec and the intent are blobs");
  stage.model.replies.push(refused.map((input) => ({ tool: "ReadResult", input })), DONE);
  await stage.resumeToEnd(runId, { intent: "Read on" });
  for (const text of lastResults(stage, stage.model.asked.length - 1)) {
    assert.match(
      text,
      /^\[NOT_FOUND\] No result of this run that was cut is named ".*"; there is: \w{12}$/,
    );
  }
});

Deno.test("wrong arguments are answered with what is wrong", async () => {
  const stage = new KernelStage({ servers: [server()] });
  const { runId, place } = await readerOf(stage);
  const { result } = place;
  const wrong: [Json, RegExp][] = [
    [{}, /needs "result"/],
    [{ result: 7 }, /needs "result"/],
    [{ result, offset: -1 }, /"offset" must be a whole number from 0 on/],
    [{ result, offset: 1.5 }, /"offset"/],
    [{ result, limit: 0 }, /"limit" must be a whole number from 1 on/],
    [{ result, line: 3 }, /takes no argument "line"/],
    [{ result, offset: LINES.length }, /has \d+ characters: nothing is at \d+/],
  ];
  stage.model.replies.push(wrong.map(([input]) => ({ tool: "ReadResult", input })), DONE);
  await stage.resumeToEnd(runId, { intent: "Read on" });
  const texts = lastResults(stage, stage.model.asked.length - 1);
  wrong.forEach(([, says], index) => assert.match(texts[index] ?? "", says));
});

Deno.test("a late answer that is cut can be read too", async () => {
  const late = new ServerDouble({
    tools: {
      get: { does: ({ clock }) => lost("timeout", sleep(clock, 5).then(() => ok(LINES))) },
      wait: { effect: "read", does: taking(50) },
    },
    outputTokensMax: LIMIT,
  });
  const stage = new KernelStage({
    servers: [late],
    decideUnknown: () => new Promise(() => {}),
    replies: [[{ tool: "world__get" }, { tool: "world__wait" }], DONE],
  });
  const { runId } = await stage.run();
  const { result } = placeIn(lastResults(stage, 1)[0] ?? "");
  assert.ok((await stage.fold(runId)).ledger.keptResults()[0]?.sha256.startsWith(result));
  assert.ok(toolsOf(stage, 1).includes("ReadResult"));
});

Deno.test("pieces of a sensitive tool's result are masked where they are shown", async () => {
  const stage = new KernelStage({ servers: [server({ sensitive: ["get"] })] });
  const { runId, place } = await readerOf(stage);
  stage.model.replies.push([{ tool: "ReadResult", input: { ...place } }], DONE);
  await stage.resumeToEnd(runId, { intent: "Read on" });
  assert.match(lastResults(stage, stage.model.asked.length - 1)[0] ?? "", /line/);
  assert.ok(!JSON.stringify([stage.events, stage.traces]).includes("line 1"));
});

Deno.test("a fork can read what was cut before it", async () => {
  const stage = new KernelStage({ servers: [server()] });
  const { runId, place } = await readerOf(stage);
  const fork = await stage.fork({ sourceRunId: runId, step: 1 });
  stage.model.replies.push([{ tool: "ReadResult", input: { ...place } }], DONE);
  await stage.resumeToEnd(fork);
  assert.match(lastResults(stage, stage.model.asked.length - 1)[0] ?? "", /line/);
});
