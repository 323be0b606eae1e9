import assert from "node:assert/strict";
import type { GraphNodeState, GraphView } from "../../base/graph.ts";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";

const VIEW: GraphView = {
  name: "flow",
  description: "",
  max_parallel: 8,
  parameters: {},
  nodes: [{ name: "a", agent: "x", depends_on: [], wave: 1 }],
};

function world(): FakeWorld {
  const made = new FakeWorld({ piped: true });
  made.system.drawn = VIEW;
  return made;
}

Deno.test("graph shows what is asked for, in the format that is asked for", async () => {
  const text = world();
  assert.equal(await text.run("graph", "flow"), 0);
  assert.deepEqual(text.system.asked, ["graph flow null"]);
  assert.match(text.out.text, /^flow: 1 node in 1 wave, at most 8 at once\n/);
  const mermaid = world();
  assert.equal(await mermaid.run("graph", "7", "--format", "mermaid"), 0);
  assert.equal(mermaid.out.text, 'flowchart TD\n  n1["a<br/>x"]\n');
  const json = world();
  assert.equal(await json.run("graph", "7", "--json"), 0);
  assert.deepEqual(JSON.parse(json.out.text).data, VIEW);
});

Deno.test("a format that isn't known, or doesn't go with --json, is a usage error", async () => {
  const wrong = world();
  assert.equal(await wrong.run("graph", "7", "--format", "png"), 2);
  assert.match(wrong.err.text, /"--format" doesn't know "png"/);
  const both = world();
  assert.equal(await both.run("graph", "7", "--format", "svg", "--json"), 2);
  assert.deepEqual([wrong.system.asked, both.system.asked], [[], []]);
});

Deno.test("run --dry-run asks for the plan with the parameters, and runs nothing", async () => {
  const made = world();
  assert.equal(await made.run("run", "flow", "--dry-run", "--set", "a=1"), 0);
  assert.deepEqual(made.system.asked, ['graph flow {"a":"1"}']);
  assert.deepEqual(made.system.runs, []);
  assert.match(made.out.text, /^flow would run 1 node in 1 wave.*; nothing was started\n/);
});

Deno.test("run hands over the parameters, resume the nodes that are to run again", async () => {
  const made = world();
  assert.equal(await made.run("run", "flow", "--set", "a=1", "--set", "b=x=y"), 0);
  assert.deepEqual(made.system.runs[0]?.parameters, { a: "1", b: "x=y" });
  assert.equal(await made.run("resume", "7", "--from", "x", "--yes"), 0);
  const [resumed] = made.system.resumes;
  assert.deepEqual([resumed?.fork, resumed?.again], [true, { node: "x", andAfter: true }]);
  for (const more of [["--node", "a", "--from", "b"], ["--node", "a", "--from-step", "1"]]) {
    assert.equal(await made.run("resume", "7", ...more), 2, more.join(" "));
  }
  assert.equal(await made.run("resume", "7", "--node", "a", "again"), 2);
});

/** A run whose nodes come on with every look. */
class MovingSystem extends FakeSystem {
  readonly #views: GraphView[];

  constructor(...states: GraphNodeState[]) {
    super();
    const run = { run_id: "01990000-0000-7000-8000-00000f3a9c2e", pid: 7, elapsed_ms: 1_000 };
    this.#views = states.map((state) => ({
      ...VIEW,
      run: { ...run, state: state === "completed" ? "dead" : "running" },
      nodes: [{ name: "a", agent: "x", depends_on: [], wave: 1, state, duration_ms: 2_000 }],
    }));
  }

  override graph(): Promise<GraphView> {
    const [next, ...rest] = this.#views;
    if (rest.length > 0) this.#views.shift();
    return next === undefined ? Promise.reject(new Error("No view")) : Promise.resolve(next);
  }
}

async function follow(made: FakeWorld): Promise<number> {
  const code = made.run("graph", "7", "--follow");
  for (let looks = 0; looks < 4; looks++) await made.clock.advance(300);
  return await code;
}

Deno.test("graph -f tells each change of a node in a line, until the run is over", async () => {
  const system = new MovingSystem("pending", "running", "running", "completed");
  const made = new FakeWorld({ piped: true, system });
  assert.equal(await follow(made), 0);
  assert.equal(made.out.text, "▶ a  running\n✓ a  completed  2.0s\n");
});

Deno.test("on a terminal the graph is painted in its place", async () => {
  const system = new MovingSystem("running", "completed");
  const made = new FakeWorld({ terminal: true, system, columns: 60, rows: 10 });
  assert.equal(await follow(made), 0);
  const [before, after] = made.out.text.split("\r\x1b[3A\x1b[J");
  assert.ok(before?.startsWith("\r\x1b[Jflow  run 0f3a9c2e  PID 7  running  1.0s\n"), before);
  assert.match(before ?? "", /\n▶ a .*running\n$/);
  assert.match(after ?? "", /✓ a .*completed {2}2\.0s\n$/);
});
