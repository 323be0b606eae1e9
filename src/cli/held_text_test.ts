import assert from "node:assert/strict";
import { FakeSystem, type Play, report } from "../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../tests/doubles/fake_world.ts";

function playing(play: Play): FakeWorld {
  const system = new FakeSystem();
  system.play = play;
  return new FakeWorld({ system });
}

Deno.test("in one file the final text isn't told twice either, and what was said before it is", async () => {
  const said = (turn: number, text: string) => ({
    type: "model.delta" as const,
    turn,
    kind: "text" as const,
    text,
  });
  const finished = (turn: number) => ({
    type: "model.finished" as const,
    turn,
    duration_ms: 300,
    input_tokens: 20,
    output_tokens: 5,
  });
  const working: Play = (run) => {
    run.events(
      said(1, "Let me "),
      said(1, "look."),
      finished(1),
      { type: "call.started", call: "t1.1", attempt: 1, tool: "look", input: {} },
      said(2, "All is "),
      said(2, "well."),
      finished(2),
    );
    return report();
  };
  const world = playing(working);
  assert.equal(await world.run("run", "demo", "-v"), 0);
  assert.equal(world.out.text, "All is well.\n");
  assert.doesNotMatch(world.err.text, /All is well/);
  assert.match(world.err.text, /^Let me look\.\n\[agent\] turn 1.*\n\[agent\] t1\.1 look/);
  assert.match(world.err.text, /turn 2: 25 tokens/);
  const cut = playing((run) => {
    run.events(said(1, "Half a "));
    return report({ state: "suspended", reason: "paused", exit_code: 9, result: "" });
  });
  await cut.run("run", "demo", "-v");
  assert.match(cut.err.text, /^Half a \n/, "what is no result is told");
});
