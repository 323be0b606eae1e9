import assert from "node:assert/strict";
import { report, row } from "../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../tests/doubles/fake_world.ts";
import { summaryLine } from "./report.ts";

const tree = { turns: 8, tokens_used: 9_000, cost_usd: 0.5 };
const nothing = { turns: 0, tokens_used: 0, cost_usd: null };

Deno.test("the end of a run tells what it and all below it used, and what of that is its own", () => {
  assert.match(
    summaryLine(report({ tree })),
    / \| 8 turns \(own: 2\) \| 9,000 tokens \(own: 1,234\) \| cost \$0\.50+ \| /,
  );
  assert.match(summaryLine(report({ ...nothing, tree })), / \| 8 turns \| 9,000 tokens \| /);
  assert.match(summaryLine(report()), / \| 2 turns \| 1,234 tokens \| /);
});

Deno.test("ps counts each process for itself, and a workflow, which is nothing itself, by its nodes", async () => {
  const world = new FakeWorld();
  const flow = row({ pid: 1, run_id: "a", agent: "flow", ...nothing, tree });
  const lead = row({ pid: 2, run_id: "b", agent: "lead", tree });
  world.system.rows = [flow, lead];
  await world.run("ps");
  const [, first = "", second = ""] = world.out.text.split("\n");
  assert.match(first, /flow +8 +9,000 +\$0\.50/);
  assert.match(second, /lead +2 +1,234 +-/);
});

Deno.test("top counts every tree once", async () => {
  const world = new FakeWorld();
  world.system.rows = [
    row({ pid: 7, run_id: "a", agent: "flow", ...nothing, tree }),
    row({ pid: 3, ppid: 7, run_id: "b" }),
    row({ pid: 9, run_id: "c" }),
  ];
  await world.run("top");
  assert.match(world.out.text, /^rnix top .* 10,234 tokens\n/);
});

Deno.test("ps shows a child under its parent also when the parent, resumed, has the greater pid", async () => {
  const world = new FakeWorld();
  world.system.rows = [
    row({ pid: 51, ppid: 54, run_id: "b", agent: "planner", state: "dead" }),
    row({ pid: 54, run_id: "a", agent: "flow" }),
    row({ pid: 55, ppid: 54, run_id: "c", agent: "writer" }),
  ];
  await world.run("ps", "-a");
  const agents = world.out.text.split("\n").slice(1, 4)
    .map((line) => /(?:└ )?(?:planner|flow|writer)/.exec(line)?.[0]);
  assert.deepEqual(agents, ["flow", "└ planner", "└ writer"]);
});
