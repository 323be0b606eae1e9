import assert from "node:assert/strict";
import type { LoadedAgent } from "../agent_manifest.ts";
import { parseManifest } from "../parse_manifest.ts";
import { Problems } from "../problems.ts";
import { loadSpec, saveSpec } from "../spec.ts";
import { nestedFaults, withParameters } from "./parameters.ts";

function load(text: string): LoadedAgent {
  const problems = new Problems();
  const { manifest } = parseManifest(text, { file: "w", instructionsBeside: undefined }, problems);
  assert.ok(manifest !== undefined, JSON.stringify(problems.list));
  return { manifest, path: "/w.yaml", folder: "/" };
}

const WORKFLOW = load(`kind: workflow
name: w
parameters:
  topic: { description: What about }
  count: { default: 3 }
  deep: { default: false }
nodes: { a: { agent: x, intent: "\${{ params.topic }}", for_each: [1, { b: c }], output: { type: string } } }
`);

Deno.test("parameters get the type of their default, and every one a value", () => {
  const { manifest } = withParameters(WORKFLOW, { topic: "cats", deep: "true" });
  assert.deepEqual(manifest.workflow?.values, { topic: "cats", count: 3, deep: true });
});

Deno.test("all that is wrong with parameters is told at once", () => {
  assert.throws(
    () => withParameters(WORKFLOW, { toppic: "x", count: "many", deep: "yes" }),
    (thrown: Error) => {
      assert.deepEqual(thrown.message.split("\n  "), [
        "4 mistakes",
        'No parameter "toppic"; did you mean `topic`?',
        'Parameter "topic" (What about) has no value; give it with --set topic=…',
        'Parameter "count" is a number, not "many"',
        'Parameter "deep" is true or false, not "yes"',
      ]);
      return true;
    },
  );
});

Deno.test("an agent that is no workflow has no parameters", () => {
  const agent = load("name: a\ninstructions: x\nmodels: { provider: ollama, preferred: m }\n");
  assert.equal(withParameters(agent, {}), agent);
  assert.throws(() => withParameters(agent, { x: "1" }), /is no workflow/);
});

Deno.test("a run keeps its workflow with the parameters that it was given", () => {
  const agent = withParameters(WORKFLOW, { topic: "cats" });
  assert.deepEqual(loadSpec(saveSpec(agent)), agent);
});

Deno.test("what a workflow gives to one below it is checked against that one's parameters", () => {
  assert.deepEqual(nestedFaults({ topc: "x" }, WORKFLOW.manifest), [
    'No parameter "topc"; did you mean `topic`?',
    'Parameter "topic" of "w" has no value; give it in "with"',
  ]);
  assert.deepEqual(nestedFaults({ topic: "x", deep: "${{ params.d }}" }, WORKFLOW.manifest), []);
  assert.deepEqual(nestedFaults({ topic: "x", count: "many", deep: "true" }, WORKFLOW.manifest), [
    'Parameter "count" is a number, not "many"',
  ]);
  assert.match(nestedFaults({ x: "1" }, { name: "a" }).join(), /"a" is no workflow/);
});
