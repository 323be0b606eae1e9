import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { SysError } from "../base/errors.ts";
import type { RunEvent } from "../base/operations.ts";
import { createRedaction } from "../base/redaction.ts";
import { RunWatch } from "./run_watch.ts";

const VALUE = "s3cret-value";
const LITERAL = "written-out";

function watching() {
  const events: RunEvent[] = [];
  const watch = new RunWatch({ onEvent: (event) => events.push(event) }, new VirtualClock(5));
  watch.pid = 3;
  watch.redaction = createRedaction({ intake: [VALUE], sinkOnly: [LITERAL] });
  const delta = (text: string, turn = 1, kind: "text" | "reasoning" = "text") =>
    watch.observer.emit({ type: "model.delta", turn, kind, text });
  const texts = () => events.flatMap((event) => event.type === "model.delta" ? [event.text] : []);
  return { watch, events, delta, texts };
}

Deno.test("a secret that is streamed in pieces is redacted, and all other text comes whole and in order", () => {
  for (const secret of [VALUE, LITERAL]) {
    const { watch, delta, texts, events } = watching();
    for (const piece of `before ${secret} after`) delta(piece);
    watch.observer.emit({ type: "model.started", turn: 2 });
    assert.equal(texts().join(""), "before [redacted] after");
    assert.equal(events.at(-1)?.type, "model.started");
  }
});

Deno.test("text that only begins like a secret is told before whatever comes next", () => {
  const { watch, delta, texts, events } = watching();
  delta("so s3cret");
  assert.deepEqual(texts(), ["so "]);
  watch.observer.emit({ type: "call.progress", call: "t1.1", message: VALUE });
  assert.deepEqual(events.map(({ type, pid, ts }) => [type, pid, ts]), [
    ["model.delta", 3, 5],
    ["model.delta", 3, 5],
    ["call.progress", 3, 5],
  ]);
  assert.deepEqual(texts(), ["so ", "s3cret"]);
  assert.deepEqual(events[2], {
    type: "call.progress",
    pid: 3,
    ts: 5,
    call: "t1.1",
    message: "[redacted]",
  });
});

Deno.test("pieces of different turns and kinds make no secret together", () => {
  const { watch, delta, events } = watching();
  delta("s3cret");
  delta("-value", 1, "reasoning");
  delta("s3cret", 1, "reasoning");
  delta("-value", 2, "reasoning");
  watch.observer.emit({ type: "model.started", turn: 3 });
  const told = new Map<string, string>();
  for (const event of events) {
    if (event.type !== "model.delta") continue;
    const key = `${event.turn} ${event.kind}`;
    told.set(key, `${told.get(key) ?? ""}${event.text}`);
  }
  assert.deepEqual([...told], [
    ["1 text", "s3cret"],
    ["1 reasoning", "-values3cret"],
    ["2 reasoning", "-value"],
  ]);
});

Deno.test("what fails once the secrets are known is told without them", async () => {
  const { watch } = watching();
  const failing = () => Promise.reject(new SysError("INVALID", `bad ${VALUE} and ${LITERAL}`));
  await assert.rejects(watch.withoutSecrets(failing()), {
    code: "INVALID",
    message: "bad [redacted] and [redacted]",
  });
  watch.redaction = undefined;
  await assert.rejects(watch.withoutSecrets(failing()), { message: /s3cret/ });
  assert.equal(await watch.withoutSecrets(Promise.resolve(1)), 1);
});
