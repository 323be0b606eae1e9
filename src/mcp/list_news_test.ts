/** Subscriptions to news are kept up, with measure. */
import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { subscribeToNews } from "./list_news.ts";

type Listen = Parameters<typeof subscribeToNews>[0]["listen"];

/** A client whose subscriptions live so long; those from the `refusedFrom`-th on are refused. */
function clientOf(clock: VirtualClock, liveMs: number, refusedFrom = Infinity) {
  let count = 0;
  const listen: Listen = () => {
    count += 1;
    if (count >= refusedFrom) return Promise.reject(new Error("refused"));
    const { promise, resolve } = Promise.withResolvers<"remote">();
    clock.after(liveMs, () => resolve("remote"));
    return Promise.resolve({
      honoredFilter: {},
      closed: promise,
      close: () => Promise.resolve(),
    });
  };
  return { listen, subscriptions: () => count };
}

const WANTED = { toolsListChanged: true };

Deno.test("a subscription that ends is taken out anew in growing pauses, and each time counts as news", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  let missed = 0;
  const client = clientOf(clock, 0);
  const done = subscribeToNews(client, WANTED, clock, stop.signal, () => missed += 1);
  await clock.advance(3_600_000);
  const count = client.subscriptions();
  assert.ok(count > 30 && count < 80, `${count} in an hour`);
  assert.equal(missed, count - 1);
  stop.abort();
  await done;
  assert.equal(clock.pending, 0);
});

Deno.test("[B13] one that is ended every five minutes is renewed within two seconds", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const client = clientOf(clock, 300_000);
  const done = subscribeToNews(client, WANTED, clock, stop.signal, () => {});
  await clock.advance(10 * 302_000);
  assert.ok(client.subscriptions() >= 10);
  stop.abort();
  await clock.run(done);
});

Deno.test("a refusal is the last word", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const client = clientOf(clock, 0, 1);
  await subscribeToNews(client, WANTED, clock, stop.signal, () => assert.fail("no news"));
  assert.equal(client.subscriptions(), 1);
});
