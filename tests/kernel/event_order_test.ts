/** The order in which a run's events are told: that of what happened, though some wait for the disk and others don't. */
import assert from "node:assert/strict";
import { Stage } from "../crash/harness.ts";

const SCENARIO = {
  name: "order",
  onUnknown: "skip" as const,
  turns: [
    [{ tool: "pay", input: { to: "a" } }, { tool: "get", input: { of: "b" } }],
    [{ tool: "get", input: { of: "c" } }],
    [{ tool: "pay_dropped", input: { to: "d" } }],
    "All is done.",
  ],
};

Deno.test("a turn's results are told before the next turn begins, and its end before its calls", async () => {
  const stage = new Stage(SCENARIO);
  const live = await stage.clock.run(stage.process().spawn());
  await stage.clock.run(live.done);
  const told = stage.shown.map(({ event }) => {
    if ("call" in event) return `${event.type} ${event.call}`;
    return "turn" in event ? `${event.type} ${event.turn}` : event.type;
  }).filter((text) => !text.startsWith("model.delta"));
  const place = (text: string) => {
    assert.ok(told.includes(text), `${text} is not among ${told.join(", ")}`);
    return told.indexOf(text);
  };
  for (
    const [earlier, later] of [
      ["model.finished 1", "call.started t1.1"],
      ["call.finished t1.1", "model.started 2"],
      ["call.finished t1.2", "model.started 2"],
      ["call.finished t2.1", "model.started 3"],
      ["call.unknown t3.1", "call.settled t3.1"],
      ["call.settled t3.1", "model.started 4"],
      ["model.finished 4", "run.exited"],
    ] as const
  ) {
    assert.ok(place(earlier) < place(later), `${earlier} after ${later}: ${told.join(", ")}`);
  }
});
