/** Workflows as a person runs them: each command an OS process, the daemon killed in the middle. */
import assert from "node:assert/strict";
import type { GraphView } from "../../src/base/graph.ts";
import { type ProcessHome, withProcessHome } from "./process_home.ts";

function agent(home: ProcessHome, name: string, turn: object): void {
  home.write(`${name}/script.yaml`, JSON.stringify({ turns: [turn] }));
  home.write(
    `${name}/agent.yaml`,
    `name: ${name}\ninstructions: x\nmodels: { provider: scripted, script: script.yaml }\n`,
  );
}

const DIAMOND = (middle: string) =>
  `kind: workflow
name: diamond
parameters: { what: { default: x } }
nodes:
  top: { agent: ./echo, intent: "\${{ params.what }}" }
  left: { agent: ./${middle}, intent: "L\${{ nodes.top.result }}", depends_on: [top] }
  right: { agent: ./${middle}, intent: "R\${{ nodes.top.result }}", depends_on: [top] }
  end: { agent: ./echo, intent: "\${{ nodes.left.result }}\${{ nodes.right.result }}", depends_on: [left, right] }
`;

async function graphOf(home: ProcessHome, run: string): Promise<GraphView> {
  const { code, out, err } = await home.rnix("graph", run, "--json");
  assert.equal(code, 0, err);
  return JSON.parse(out).data;
}

/** Looks again until it is so. */
async function until(home: ProcessHome, isSo: (view: GraphView) => boolean): Promise<GraphView> {
  for (let looks = 0; looks < 200; looks++) {
    const view = await graphOf(home, "1");
    if (isSo(view)) return view;
  }
  assert.fail("It doesn't come to be so");
}

Deno.test("a diamond by command line: planned, run with a parameter, streamed, and drawn", async () => {
  await withProcessHome(async (home) => {
    agent(home, "echo", { text: "<${{ intent }}>" });
    home.write("flow.yaml", DIAMOND("echo"));
    const plan = await home.rnix("run", "--dry-run", "flow.yaml");
    assert.equal(plan.code, 0, plan.err);
    assert.match(plan.out, /^diamond would run 4 nodes in 3 waves, at most 8 at once; nothing/);
    assert.match((await home.rnix("ps", "-a")).out, /^No active processes/);
    const ran = await home.rnix("run", "flow.yaml", "--set", "what=y", "--stream");
    assert.equal(ran.code, 0, ran.err);
    const lines = ran.out.trim().split("\n").map((line) => JSON.parse(line));
    const started = lines.filter(({ type }) => type === "call.started").map(({ call }) => call);
    assert.deepEqual(started, ["n.top", "n.left", "n.right", "n.end"]);
    assert.equal(lines.at(-1)?.data?.result ?? lines.at(-1)?.result, "<<L<y>><R<y>>>");
    const view = await graphOf(home, "1");
    assert.deepEqual(view.nodes.map(({ state }) => state), Array(4).fill("completed"));
    const logs = await home.rnix("logs", "1");
    assert.match(logs.out, /n\.top agent__echo \{"intent":"y"\} →/, "as it was told live");
    assert.match(logs.out, /n\.end agent__echo \{"intent":"<L<y>><R<y>>"\} →/);
    const svg = await home.rnix("graph", "1", "--format", "svg");
    assert.match(svg.out, /^<svg [\s\S]*<\/svg>\n$/);
  });
});

Deno.test("a workflow whose daemon was killed goes on: what was over isn't done again, what was in the middle is taken up", async () => {
  await withProcessHome(async (home) => {
    agent(home, "echo", { text: "<${{ intent }}>" });
    agent(home, "slow", { text: "<${{ intent }}>", delay: "6s" });
    home.write("flow.yaml", DIAMOND("slow"));
    assert.equal((await home.rnix("run", "-d", "flow.yaml")).out.trim(), "1");
    await until(home, ({ nodes }) => nodes.filter(({ state }) => state === "running").length === 2);
    const record = JSON.parse(Deno.readTextFileSync(`${home.folder}/home/state/daemon.json`));
    Deno.kill(record.os_pid, "SIGKILL");
    const cut = await until(home, ({ run }) => run?.state !== "running");
    assert.deepEqual(cut.nodes.map(({ state }) => state), [
      "completed",
      "suspended",
      "suspended",
      "pending",
    ]);
    const resumed = await home.rnix("resume", "1");
    assert.deepEqual([resumed.code, resumed.out], [0, "<<L<x>><R<x>>>\n"], resumed.err);
    const view = await graphOf(home, "1");
    const runs = (graph: GraphView) =>
      graph.nodes.slice(0, 3).map(({ processes }) => processes?.map(({ run_id }) => run_id));
    assert.deepEqual(runs(view), runs(cut));
    const again = await home.rnix("resume", "1", "--from", "left", "--yes");
    assert.equal(again.out, "<<L<x>><R<x>>>\n", again.err);
  });
});

Deno.test("every mistake of a workflow is told with its place, and nothing is started", async () => {
  await withProcessHome(async (home) => {
    home.write(
      "bad.yaml",
      `kind: workflow
name: bad
nodes:
  a: { agent: nobody, intent: "\${{ nodes.b.reslt }}", depends_on: [b] }
  b: { agent: demo, intent: x, depends_on: [a] }
`,
    );
    const { code, err } = await home.rnix("run", "bad.yaml");
    assert.equal(code, 2);
    const told = err.split("\n").filter((line) => line.includes("bad.yaml:"));
    assert.deepEqual(told.map((line) => line.trim()), [
      'bad.yaml:4:15: No agent "nobody"; there are ' +
      "audit, demo, github-assistant, playwright-demo, release-notes, survey",
      'bad.yaml:4:36: A node has no "reslt"; did you mean `result`?',
      "bad.yaml:4:68: Nodes wait for each other: a → b → a",
    ]);
    assert.equal((await home.rnix("graph", "bad.yaml")).code, 2);
  });
});
