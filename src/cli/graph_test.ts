import assert from "node:assert/strict";
import type { GraphNode, GraphView } from "../base/graph.ts";
import { graphMermaid } from "./graph_mermaid.ts";
import { graphSvg } from "./graph_svg.ts";
import { graphText } from "./graph_text.ts";

const node = (name: string, more: Partial<GraphNode> = {}): GraphNode => ({
  name,
  agent: "writer",
  depends_on: [],
  wave: 1,
  ...more,
});

const PLAN: GraphView = {
  name: "report",
  description: "",
  max_parallel: 4,
  parameters: { topic: null, deep: false },
  nodes: [
    node("end", {
      depends_on: ["a", "b"],
      regardless: ["b"],
      wave: 2,
      when: 'nodes.a.output.ok == "<yes>"',
    }),
    node("a", { for_each: "params.topic", attempts_max: 3, has_output: true }),
    node("b", { on_failure: "continue" }),
  ],
};

const RUN: GraphView = {
  ...PLAN,
  run: {
    run_id: "01990000-0000-7000-8000-00000f3a9c2e",
    pid: 7,
    state: "suspended",
    reason: "limit",
    elapsed_ms: 61_000,
  },
  nodes: [
    node("end", { depends_on: ["a", "b"], wave: 2, state: "pending" }),
    node("a", {
      state: "suspended",
      started_ms: 1,
      duration_ms: 9,
      items: { total: 5, completed: 3, failed: 0, running: 2 },
    }),
    node("b", {
      state: "failed",
      started_ms: 1,
      duration_ms: 2_100,
      attempts: 2,
      reason: "It\nbroke",
      processes: [{ call: "n.b", run_id: "x", pid: 9 }],
    }),
  ],
};

Deno.test("a plan tells the nodes by waves, with what is said of each", () => {
  assert.equal(
    graphText(PLAN),
    `report: 3 nodes in 2 waves, at most 4 at once
parameters: topic (to be given with --set), deep=false
WAVE  NODE  AGENT
   1  a     writer  for each of params.topic; up to 3 tries; answers in JSON
      b     writer  goes on after a failure
   2  end   writer  after a, b (ended); when nodes.a.output.ok == "<yes>"`,
  );
});

Deno.test("a run's graph tells states, times, items and reasons", () => {
  assert.equal(
    graphText(RUN),
    `report  run 0f3a9c2e  PID 7  suspended (limit)  1m01s
  NODE  AGENT   STATE      TIME
· end   writer  pending          after a, b
‖ a     writer  suspended        3 of 5, 2 at work
✗ b     writer  failed     2.1s  2 tries; PID 9; It broke`,
  );
});

Deno.test("Mermaid text has its names and quotes made harmless, and a class per state", () => {
  assert.equal(
    graphMermaid(PLAN),
    `flowchart TD
  n1["end<br/>writer<br/>when nodes.a.output.ok == #quot;&lt;yes&gt;#quot;"]
  n2["a<br/>writer, each item"]
  n3["b<br/>writer"]
  n2 -.-> n1
  n3 -.-> n1`,
  );
  const lines = graphMermaid(RUN).split("\n");
  assert.ok(lines.includes("  class n3 failed"), lines.join("\n"));
  assert.ok(lines.some((line) => line.includes("classDef suspended fill:#fff8e1")));
});

Deno.test("the picture is a well-formed document with a box per node and an arrow per dependency", () => {
  const svg = graphSvg(RUN);
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" width="424" height="220"/);
  assert.equal(svg.match(/<g>/g)?.length, 3);
  assert.equal(svg.match(/marker-end/g)?.length, 2);
  const plan = graphSvg(PLAN);
  assert.match(plan, /<title>nodes\.a\.output\.ok == &quot;&lt;yes&gt;&quot;<\/title>/);
  assert.equal(plan.match(/stroke-dasharray/g)?.length, 2);
});
