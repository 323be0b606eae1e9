import assert from "node:assert/strict";
import { AbortJoin } from "./abort.ts";

const never = new Promise<never>(() => {});

Deno.test("whichever source aborts, everyone who waits is let go with its reason", async () => {
  for (const index of [0, 1, 2]) {
    const sources = [new AbortController(), new AbortController(), new AbortController()];
    const join = new AbortJoin(sources.map(({ signal }) => signal));
    const waiting = [join.race(never), join.race(never)];
    sources[index]?.abort(`reason ${index}`);
    const reasons = (await Promise.allSettled(waiting)).map((end) =>
      end.status === "rejected" && end.reason
    );
    assert.deepEqual(reasons, [`reason ${index}`, `reason ${index}`]);
    assert.equal(join.signal.reason, `reason ${index}`);
  }
});

Deno.test("the first abort is the one that counts", () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const join = new AbortJoin([first.signal, second.signal]);
  second.abort("second");
  first.abort("first");
  assert.equal(join.signal.reason, "second");
});

Deno.test("a join of an aborted source is aborted, and lets nobody wait", async () => {
  const join = new AbortJoin([new AbortController().signal, AbortSignal.abort("before")]);
  assert.equal(join.signal.reason, "before");
  await assert.rejects(join.race(never), (reason) => reason === "before");
});

Deno.test("what comes before an abort is given, whether good or bad", async () => {
  const source = new AbortController();
  const join = new AbortJoin([source.signal]);
  assert.equal(await join.race(Promise.resolve(1)), 1);
  await assert.rejects(join.race(Promise.reject(new Error("own"))), /own/);
});

Deno.test("work that fails after it was given up fails unheard", async () => {
  const source = new AbortController();
  const join = new AbortJoin([source.signal]);
  const work = Promise.withResolvers<void>();
  const waiting = join.race(work.promise);
  source.abort("over");
  work.reject(new Error("late"));
  await assert.rejects(waiting, (reason) => reason === "over");
});

Deno.test("a released join hears its sources no more", () => {
  const source = new AbortController();
  const join = new AbortJoin([source.signal]);
  join.release();
  source.abort();
  assert.ok(!join.signal.aborted);
});

/** A body that gives one chunk and then nothing, and doesn't know of the signal. */
function silentBody(): { response: Response; cancelled: () => unknown } {
  let cancelled: unknown;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => controller.enqueue(new Uint8Array([7])),
    cancel: (reason) => {
      cancelled = reason;
    },
  });
  const headers = { "x-a": "b" };
  return { response: new Response(body, { status: 429, headers }), cancelled: () => cancelled };
}

Deno.test("a guarded body fails with the abort, and its source is cancelled", async () => {
  const source = new AbortController();
  const join = new AbortJoin([source.signal]);
  const { response, cancelled } = silentBody();
  const guarded = join.guard(response);
  assert.deepEqual([guarded.status, guarded.headers.get("x-a")], [429, "b"]);
  const reader = guarded.body?.getReader();
  assert.deepEqual((await reader?.read())?.value, new Uint8Array([7]));
  const waiting = reader?.read();
  source.abort("stalled");
  await assert.rejects(async () => await waiting, (reason) => reason === "stalled");
  assert.equal(cancelled(), "stalled");
});

Deno.test("a guarded body that nobody reads is cancelled all the same", () => {
  const source = new AbortController();
  const { response, cancelled } = silentBody();
  new AbortJoin([source.signal]).guard(response);
  source.abort("stalled");
  assert.equal(cancelled(), "stalled");
});

Deno.test("a body that comes after the abort is cancelled at once", async () => {
  const { response, cancelled } = silentBody();
  const guarded = new AbortJoin([AbortSignal.abort("before")]).guard(response);
  assert.equal(cancelled(), "before");
  await assert.rejects(guarded.text(), (reason) => reason === "before");
});

Deno.test("a reader that leaves cancels the source", async () => {
  const { response, cancelled } = silentBody();
  await new AbortJoin([]).guard(response).body?.cancel("enough");
  assert.equal(cancelled(), "enough");
});

Deno.test("a guarded body that ends is whole, and an empty one stays none", async () => {
  const join = new AbortJoin([new AbortController().signal]);
  assert.equal(await join.guard(new Response("whole text")).text(), "whole text");
  assert.equal(join.guard(new Response(null, { status: 204 })).body, null);
});
