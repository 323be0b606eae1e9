import assert from "node:assert/strict";
import { FakeWorld, type WorldOptions } from "../../tests/doubles/fake_world.ts";
import { report, type RunEventBody } from "../../tests/doubles/fake_system.ts";
import type { GraphNodeState, GraphView } from "../base/graph.ts";

const RUN = "01990000-0000-7000-8000-00000f3a9c2e";

function view(state: GraphNodeState): GraphView {
  return {
    name: "flow",
    description: "",
    max_parallel: 8,
    parameters: {},
    run: { run_id: RUN, pid: 1, state: "running", elapsed_ms: 10 },
    nodes: [{ name: "look", agent: "x", depends_on: [], wave: 1, state }],
  };
}

const STARTED: RunEventBody = {
  type: "run.started",
  run_id: RUN,
  agent: "flow",
  intent: "",
  model: "workflow",
};
const CALLED: RunEventBody = {
  type: "call.started",
  call: "n.look",
  attempt: 1,
  tool: "agent__x",
  input: { intent: "Look" },
};

/** Runs a workflow whose node is at work for a second. */
async function play(options: WorldOptions, ...args: string[]): Promise<FakeWorld> {
  const world = new FakeWorld({ columns: 60, rows: 20, ...options });
  world.system.drawn = view("running");
  const begun = Promise.withResolvers<void>();
  world.system.play = async (run) => {
    run.events(STARTED, CALLED);
    begun.resolve();
    await new Promise<void>((done) => world.clock.after(1_000, done));
    run.events({ type: "notice", message: "By the way" });
    world.system.drawn = view("completed");
    return report();
  };
  const code = world.run("run", "flow", ...args);
  await begun.promise;
  for (let step = 0; step < 8; step++) await world.clock.advance(200);
  assert.equal(await code, 0);
  return world;
}

Deno.test("on a terminal a workflow's graph stands below what is told, and its last state stays", async () => {
  const { err } = await play({ terminal: true });
  assert.doesNotMatch(err.text, /n\.look/, "no line for every call");
  const blocks = err.text.split("flow  run 0f3a9c2e");
  assert.ok(blocks.length >= 4, err.text);
  assert.match(blocks[1] ?? "", /▶ look/);
  assert.match(blocks.at(-1) ?? "", /✓ look/);
  const notice = err.text.indexOf("notice: By the way");
  assert.ok(err.text.slice(0, notice).endsWith("\x1b[3A\x1b[J"), "it made room for the notice");
});

Deno.test("elsewhere, and where more is to be told, each call is a line", async () => {
  const verbose = await play({ terminal: true }, "-v");
  assert.match(verbose.err.text, /n\.look agent__x/);
  assert.doesNotMatch(verbose.err.text, /▶ look/);
  assert.deepEqual(verbose.system.asked, []);
});

Deno.test("an interrupt is told on a line of its own, whatever the terminal echoed, and the graph is drawn whole once more at the end", async () => {
  const world = new FakeWorld({ terminal: true, columns: 60, rows: 20 });
  world.system.drawn = view("running");
  const begun = Promise.withResolvers<void>();
  world.system.play = async (run) => {
    run.events(STARTED, CALLED);
    begun.resolve();
    await run.untilTold(1);
    world.system.drawn = view("suspended");
    return report({ state: "suspended", reason: "paused", exit_code: 9 });
  };
  const code = world.run("run", "flow");
  await begun.promise;
  for (let step = 0; step < 3; step++) await world.clock.advance(200);
  // What a terminal does by itself.
  world.err.text += "^C";
  world.signal("SIGINT");
  for (let step = 0; step < 3; step++) await world.clock.advance(200);
  assert.equal(await code, 9);
  const screen = onScreen(world.err.text);
  const notice = screen.indexOf("suspending; Ctrl-C again ends the run");
  assert.ok(notice >= 0, screen.join("\n"));
  const after = screen.slice(notice + 1).join("\n");
  assert.match(after, /^flow {2}run 0f3a9c2e .*\n.*NODE.*\n‖ look/);
  assert.equal(screen.filter((line) => line.startsWith("fl")).length, 1, screen.join("\n"));
});

/** The lines that stand on a terminal in the end: it knows what a graph is painted with. */
function onScreen(text: string): string[] {
  const lines = [""];
  let row = 0;
  let column = 0;
  const shown = text.replaceAll("\x1b", "␛");
  for (const [part] of shown.matchAll(/␛\[\d*[A-Z]|[\r\n]|[^␛\r\n]+/g)) {
    const up = /^␛\[(\d+)A$/.exec(part)?.[1];
    if (up !== undefined) row -= Number(up);
    else if (part === "␛[J") {
      lines.splice(row + 1);
      lines[row] = (lines[row] ?? "").slice(0, column);
    } else if (part === "\r") column = 0;
    else if (part === "\n") {
      column = 0;
      row += 1;
    } else {
      const line = (lines[row] ?? "").padEnd(column);
      lines[row] = line.slice(0, column) + part + line.slice(column + part.length);
      column += part.length;
    }
  }
  return lines;
}
