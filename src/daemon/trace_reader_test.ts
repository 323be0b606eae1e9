import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { TraceItem } from "../base/operations.ts";
import { createRedaction } from "../base/redaction.ts";
import { TraceFile } from "./trace_file.ts";
import { readTrace } from "./trace_reader.ts";

const redactor = createRedaction({ intake: [], sinkOnly: ["s3cr3t-canary"] }).sink;
const FOLDER = "/run";

async function stage(bytesMax?: number) {
  const storage = new FaultyDisk();
  await storage.makeFolder(FOLDER, 0o700);
  const open = () =>
    TraceFile.open({
      storage,
      folder: FOLDER,
      redactor,
      ...(bytesMax === undefined ? {} : { bytesMax }),
    });
  return { storage, open };
}

const call = (syscall: string, pid = 1) => ({
  timestamp_ms: 1,
  pid,
  syscall,
  args: { path: "/a" },
  result: 3,
  error: null,
  duration_ms: 0,
});

const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

async function all(items: AsyncIterable<TraceItem>): Promise<string[]> {
  const found: string[] = [];
  for await (const item of items) {
    found.push(item.kind === "record" ? item.record.syscall : `missed ${item.events}`);
  }
  return found;
}

Deno.test("what was traced is read again in order, over incarnations, without secrets", async () => {
  const { storage, open } = await stage();
  for (const pid of [1, 2]) {
    const trace = await open();
    trace.record({ ...call(`a${pid}`, pid), error: "s3cr3t-canary" });
    trace.record(call(`b${pid}`, pid));
    trace.close();
  }
  const reading = {
    storage,
    clock: new VirtualClock(),
    folder: FOLDER,
    fromNow: false,
    isLive: () => Promise.resolve(false),
  };
  assert.deepEqual(await all(readTrace(reading)), ["a1", "b1", "a2", "b2"]);
  const text = new TextDecoder().decode(await storage.read(`${FOLDER}/trace.jsonl`));
  assert.ok(!text.includes("s3cr3t-canary"));
});

Deno.test("a run at work is followed from now on, to its end", async () => {
  const { storage, open } = await stage();
  const clock = new VirtualClock();
  const trace = await open();
  trace.record(call("before"));
  await turn();
  let live = true;
  const reading = readTrace({
    storage,
    clock,
    folder: FOLDER,
    fromNow: true,
    isLive: () => Promise.resolve(live),
  });
  const found = all(reading);
  await turn();
  trace.record(call("after"));
  await turn();
  trace.record(call("last"));
  trace.close();
  live = false;
  assert.deepEqual(await clock.run(found), ["after", "last"]);
});

Deno.test("a full file is replaced, and a slow reader is told how many it has missed", async () => {
  const { storage, open } = await stage(400);
  const trace = await open();
  for (let index = 1; index <= 12; index += 1) {
    trace.record(call(`c${index}`));
    await turn();
    await turn();
  }
  trace.close();
  const reading = {
    storage,
    clock: new VirtualClock(),
    folder: FOLDER,
    fromNow: false,
    isLive: () => Promise.resolve(false),
  };
  const found = await all(readTrace(reading));
  const [first = ""] = found;
  assert.match(first, /^missed \d+$/);
  const missed = Number(first.slice("missed ".length));
  const rest = Array.from({ length: 12 - missed }, (_, index) => `c${missed + index + 1}`);
  assert.deepEqual(found.slice(1), rest);
  assert.ok(missed > 0 && missed < 12);
});

Deno.test("half a record at the end waits for its other half; what is no record is passed over", async () => {
  const { storage } = await stage();
  const file = await storage.open(`${FOLDER}/trace.jsonl`, { create: true });
  const line = JSON.stringify({ n: 1, ...call("whole") });
  file.append(new TextEncoder().encode(`nonsense\n[1]\n${line}\n${line.slice(0, 20)}`));
  const reading = {
    storage,
    clock: new VirtualClock(),
    folder: FOLDER,
    fromNow: false,
    isLive: () => Promise.resolve(false),
  };
  assert.deepEqual(await all(readTrace(reading)), ["whole"]);
  file.append(new TextEncoder().encode(`${line.slice(20).replace("whole", "other")}\n`));
  assert.deepEqual(await all(readTrace(reading)), ["whole", "other"]);
});

Deno.test("a run without a trace has none", async () => {
  const { storage } = await stage();
  const reading = {
    storage,
    clock: new VirtualClock(),
    folder: FOLDER,
    fromNow: false,
    isLive: () => Promise.resolve(false),
  };
  assert.deepEqual(await all(readTrace(reading)), []);
});
