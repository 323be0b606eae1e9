import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { CLOSE_MS_MAX, GATHER_MS, type Post, SpanExporter, WAITING_MAX } from "./exporter.ts";
import type { SpanRecord } from "./span.ts";

const span = (name: string): SpanRecord => ({
  traceId: "0".repeat(32),
  spanId: "1".repeat(16),
  links: [],
  name,
  kind: "internal",
  startMs: 1,
  endMs: 2,
  attributes: {},
  failed: false,
});

interface Sent {
  resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[];
}

/** An exporter whose collector does what `answer` says, request by request. */
function stage(answer: (request: number, signal: AbortSignal) => Promise<number>) {
  const clock = new VirtualClock();
  const batches: string[][] = [];
  const lost: string[] = [];
  const post: Post = (body, signal) => {
    const sent = JSON.parse(new TextDecoder().decode(body)) as Sent;
    batches.push(
      sent.resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name))
      ),
    );
    return answer(batches.length, signal);
  };
  const origin = { serviceName: "x", version: "1" };
  const exporter = new SpanExporter({ clock, post, origin, onLost: (why) => lost.push(why) });
  return { clock, batches, lost, exporter };
}

const taken = () => Promise.resolve(200);
/** A request that is never answered, nor given up. */
const never = () => new Promise<number>(() => {});

Deno.test("spans are gathered for a while, and what is left is sent at the end", async () => {
  const { clock, batches, exporter } = stage(taken);
  exporter.add(span("a"));
  exporter.add(span("b"));
  assert.deepEqual(batches, []);
  await clock.advance(GATHER_MS);
  assert.deepEqual(batches, [["a", "b"]]);
  exporter.add(span("c"));
  await clock.run(exporter.close());
  assert.deepEqual(batches, [["a", "b"], ["c"]]);
  exporter.add(span("d"));
  await clock.run(exporter.close());
  assert.equal(batches.length, 2);
  assert.equal(clock.pending, 0);
});

Deno.test("[F17] what waits has a bound, and its loss is told once", async () => {
  const { clock, batches, lost, exporter } = stage(never);
  for (let index = 0; index < WAITING_MAX * 2; index += 1) exporter.add(span(String(index)));
  assert.deepEqual(lost, ["Telemetry is incomplete: the collector is too slow"]);
  const startMs = clock.now();
  await clock.run(exporter.close());
  assert.equal(clock.now() - startMs, CLOSE_MS_MAX);
  assert.equal(batches.length, 1);
  assert.equal(lost.length, 1);
  assert.equal(clock.pending, 0);
});

Deno.test("a batch is sent again after an answer that may pass, and given up after three", async () => {
  const { clock, batches, lost, exporter } = stage((request) =>
    request < 3 || request > 3 ? Promise.resolve(503) : taken()
  );
  exporter.add(span("a"));
  await clock.advance(60_000);
  assert.deepEqual(batches, [["a"], ["a"], ["a"]]);
  assert.deepEqual(lost, []);
  exporter.add(span("b"));
  await clock.advance(60_000);
  assert.equal(batches.length, 6);
  assert.deepEqual(lost, ["Telemetry is incomplete: the collector answers with status 503"]);
});

Deno.test("a refusal is final, and the next batch goes out all the same", async () => {
  const { clock, batches, lost, exporter } = stage((request) =>
    request === 1 ? Promise.resolve(401) : taken()
  );
  exporter.add(span("a"));
  await clock.advance(GATHER_MS);
  exporter.add(span("b"));
  await clock.advance(GATHER_MS);
  assert.deepEqual(batches, [["a"], ["b"]]);
  assert.deepEqual(lost, ["Telemetry is incomplete: the collector answers with status 401"]);
});

Deno.test("at the end nothing is waited for but one last try", async () => {
  const { clock, batches, exporter } = stage(() => Promise.reject(new Error("no way")));
  exporter.add(span("a"));
  await clock.advance(GATHER_MS);
  assert.equal(batches.length, 1);
  const startMs = clock.now();
  await clock.run(exporter.close());
  assert.equal(clock.now(), startMs);
  assert.equal(batches.length, 2);
});
