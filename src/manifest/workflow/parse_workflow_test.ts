import assert from "node:assert/strict";
import { parseManifest } from "../parse_manifest.ts";
import { formatProblem, Problems } from "../problems.ts";

const KNOWN = ["demo", "writer", "sub-flow"];

function parse(text: string) {
  const problems = new Problems();
  const { manifest } = parseManifest(text, {
    file: "w",
    instructionsBeside: undefined,
    agents: KNOWN,
  }, problems);
  return { manifest, told: problems.list.map(formatProblem) };
}

const HEAD = "kind: workflow\nname: w\n";
const node = (line: string) => `${HEAD}nodes:\n  a: { agent: demo, intent: x }\n  ${line}\n`;

function told(text: string): string[] {
  const parsed = parse(text);
  assert.equal(parsed.manifest, undefined);
  return parsed.told;
}

Deno.test("a workflow's file becomes one checked value", () => {
  const { manifest, told } = parse(`kind: workflow
name: review
description: Reviews
intent: All of it
max_parallel: 3
parameters:
  topic:
  deep: { default: false, description: More }
budget: { tokens: 100, duration: 1m }
on_unknown: skip
nodes:
  plan:
    agent: demo
    model: small
    intent: Plan \${{ params.topic }}
    output: { type: object, properties: { parts: { type: array } }, required: [parts] }
  each:
    workflow: sub-flow
    depends_on: { plan: completed }
    for_each: \${{ nodes.plan.output.parts }}
    as: part
    intent: Do \${{ part.name }}
    with: { deep: "\${{ params.deep }}", n: 3 }
    retry: { attempts: 3, backoff: 2s }
    on_failure: continue
  end:
    agent: ./agents/Editor.yaml
    depends_on: [plan, each]
    when: nodes.plan.output.parts != null
    intent: Put together \${{ nodes.each.result[0] }}
result: \${{ nodes.end.result }}
`);
  assert.deepEqual(told, []);
  assert.deepEqual(manifest?.budget, { tokens: 100, duration_ms: 60_000 });
  assert.deepEqual(manifest?.agents, [
    { name: "demo", detach: false },
    { name: "sub-flow", detach: false },
    { name: "editor", manifest: "./agents/Editor.yaml", detach: false },
  ]);
  assert.equal(manifest?.onUnknown, "skip");
  const { workflow } = manifest ?? {};
  assert.deepEqual(workflow?.parameters, [
    { name: "topic", description: "" },
    { name: "deep", description: "More", fallback: false },
  ]);
  assert.equal(workflow?.maxParallel, 3);
  assert.equal(workflow?.result, "${{ nodes.end.result }}");
  assert.deepEqual(workflow?.nodes[1], {
    name: "each",
    agent: "sub-flow",
    intent: "Do ${{ part.name }}",
    after: ["plan"],
    forEach: { expression: "${{ nodes.plan.output.parts }}" },
    as: "part",
    retry: { attempts: 3, backoffMs: 2_000 },
    onFailure: "continue",
    with: { deep: "${{ params.deep }}", n: "3" },
  });
  assert.equal(workflow?.nodes[0]?.model, "small");
  assert.equal(workflow?.nodes[2]?.agent, "editor");
});

Deno.test("the original's compose file is a workflow whose nodes know what came before", () => {
  const { manifest, told } = parse(`version: "1.0"
intent: Make a report
model: small
agents:
  demo:
    intent: Look
  writing:
    agent: writer
    model: large
    intent: Write
    depends_on:
      demo: completed
`);
  assert.deepEqual(told, []);
  const [first, second] = manifest?.workflow?.nodes ?? [];
  assert.deepEqual([first?.agent, first?.model, first?.after], ["demo", "small", []]);
  assert.deepEqual([second?.agent, second?.model, second?.after], ["writer", "large", ["demo"]]);
  assert.equal(
    second?.intent,
    "Write\n\nThe goal of the whole: ${{ intent }}\n\nWhat demo came to:\n${{ nodes.demo.result }}",
  );
  assert.equal(manifest?.workflow?.intent, "Make a report");
});

Deno.test("mistakes of a compose file are told with their places", () => {
  const found = told(`version: "2.0"
agents:
  demo: { intent: x, depends_on: { wrting: completed, demo: running } }
  writing: { agent: writr, intnt: y }
`);
  assert.deepEqual(found, [
    'w:1:10: Expected one of 1.0, got "2.0"; did you mean `1.0`?',
    'w:3:36: No node "wrting"; did you mean `writing`?',
    'w:3:55: Node "demo" depends on itself',
    'w:3:61: Expected completed, got "running"',
    'w:4:21: No agent "writr"; did you mean `writer`?',
    'w:4:28: Unknown key "intnt" in agents.writing; did you mean `intent`?',
  ]);
});

Deno.test("nodes that wait for each other are named as a path, each group once", () => {
  const found = told(`${HEAD}nodes:
  a: { agent: demo, intent: x, depends_on: [c] }
  b: { agent: demo, intent: x, depends_on: [a] }
  c: { agent: demo, intent: x, depends_on: [b] }
  d: { agent: demo, intent: x, depends_on: [d] }
  e: { agent: demo, intent: x, depends_on: [a, f] }
  f: { agent: demo, intent: x, depends_on: [e] }
`);
  assert.deepEqual(found, [
    "w:4:45: Nodes wait for each other: a → c → b → a",
    'w:7:45: Node "d" depends on itself',
    "w:8:48: Nodes wait for each other: e → f → e",
  ]);
});

Deno.test("every kind of mistake in one file is told at once, each at its place", () => {
  const found = told(`kind: workflow
name: bad
parameters: { topic: }
nodes:
  plan:
    agent: nobody
    intent: |
      First \${{ nodes.other.result }},
      then \${{ params.topc }} and \${{ nodes.zzz.result }}
  other: { agent: demo, intent: "x \${{ item }}", depends_on: [plan, plan] }
  third: { agent: demo, intent: x, depends_on: { othr: completed, plan: done } }
  never: { agent: demo, intent: "\${{ x", when: "1 == 2", retry: { attempts: 99 } }
  seven: { agent: demo, intent: "\${{ nodes.typed.output.nme }}", depends_on: typed, when: "nodes.typed.result && true" }
  typed: { agent: demo, intent: f, output: { type: objet, properties: { name: { typ: string } } } }
  six: { intent: x, as: i, wen: true }
  dup: { agent: demo, intent: y }
  dup: { agent: demo, intent: z }
  Bad.Name: { agent: demo, workflow: sub-flow, with: { a: 1 }, intent: y, for_each: [1], as: nodes }
max_paralel: 3
result: \${{ nodes.gone.result }}
`);
  assert.deepEqual(found, [
    'w:6:12: No agent "nobody"; there are demo, writer, sub-flow',
    'w:8:17: Node "other" need not be over by then: add it to depends_on of "plan"',
    'w:9:16: No parameter "topc"; did you mean `topic`?',
    'w:9:39: No node "zzz"; known here: plan, other, third, never, seven, typed, six, dup, Bad.Name',
    "w:10:40: Nothing is called `item` here; known here: nodes, params, intent",
    'w:10:69: Node "plan" is listed twice',
    'w:11:50: No node "othr"; did you mean `other`?',
    'w:11:73: Expected completed or ended, got "done"',
    'w:12:34: "${{" without its "}}"; write "$${{" for the plain text',
    'w:12:48: Node "never" can never run: its "when" is always false',
    "w:12:77: Expected at most 10, got the number 99",
    'w:13:38: The output of "typed" has no "nme"; did you mean `name`?',
    'w:13:111: "&&" is not known here; write "and"',
    'w:14:52: Expected one of null, boolean, integer, number, string, array, object, got "objet"',
    'w:14:81: Unknown key "typ" in nodes.typed.output.properties.name; did you mean `type`?',
    'w:15:3: Node "six" needs "agent" or "workflow": who does it',
    'w:15:21: "as" names the item of "for_each", which isn\'t here',
    'w:15:28: Unknown key "wen" in nodes.six; did you mean `when`?',
    'w:17:3: Duplicate key "dup": line 16 has it already',
    'w:18:3: Invalid name "Bad.Name": use letters, digits, - and _, at most 64, not beginning with - or _',
    'w:18:28: Both "agent" and "workflow"; keep one of them',
    'w:18:94: "nodes" has a meaning already; take another name',
    'w:19:1: Unknown key "max_paralel"; did you mean `max_parallel`?',
    'w:20:13: No node "gone"; known here: plan, other, third, never, seven, typed, six, dup, Bad.Name',
  ]);
});

Deno.test("an expression may only name what is known where it stands", () => {
  const cases: [string, RegExp][] = [
    [
      "b: { agent: demo, intent: '${{ nodes.a }}', depends_on: a }",
      /What of it\? Write `nodes\.a\.result`/,
    ],
    [
      "b: { agent: demo, intent: '${{ nodes.a.reslt }}', depends_on: a }",
      /A node has no "reslt"; did you mean `result`/,
    ],
    [
      "b: { agent: demo, intent: '${{ nodes.a.output.x }}', depends_on: a }",
      /Node "a" has no output/,
    ],
    [
      "b: { agent: demo, intent: '${{ nodes.a.result.x }}', depends_on: a }",
      /is a text: nothing is in it; parts can be had/,
    ],
    [
      "b: { agent: demo, intent: '${{ nodes.b.result }}', depends_on: a }",
      /can't know its own result/,
    ],
    ["b: { agent: demo, intent: '${{ nodes }}', depends_on: a }", /Which node\?/],
    ["b: { agent: demo, intent: '${{ intent.x }}' }", /`intent` is a text/],
    [
      "b: { agent: demo, intent: x, for_each: [1], when: item == 1 }",
      /`item` is known only in the intent/,
    ],
    ["b: { agent: demo, intent: x, for_each: params.p }", /No parameter "p"; there are none/],
    ["b: { agent: demo, intent: x, with: { a: 1 } }", /"with" gives parameters to a workflow/],
    ["b: { workflow: sub-flow, model: m, intent: x }", /"model" is for an agent/],
    ["b: { agent: demo, intent: x, output: {} }", /The schema is empty/],
    [
      "b: { agent: demo, intent: x, output: { pattern: '(' , type: string } }",
      /Not a regular expression/,
    ],
    ["b: { agent: demo, intent: x, depends_on: 7 }", /Expected a list of nodes/],
    ["b: { agent: demo, intent: x, for_each: 7 }", /Expected a list, or an expression/],
  ];
  for (const [line, message] of cases) {
    const found = told(node(line));
    assert.equal(found.length, 1, `${line}: ${found}`);
    assert.match(found[0] ?? "", message);
    assert.match(found[0] ?? "", /^w:5:/);
  }
  const known = "b: { agent: demo, intent: '${{ nodes.a.status }} ${{ intent }}', depends_on: a }";
  assert.deepEqual(parse(node(known)).told, []);
});

Deno.test("so many nodes that nobody could look at them are told of, and not looked at", () => {
  const line = (index: number) => `  n${index}: { agent: demo, intent: x, depends_on: [zzz] }\n`;
  const of = (count: number) =>
    `${HEAD}nodes:\n${Array.from({ length: count }, (_, i) => line(i)).join("")}`;
  assert.equal(told(of(500)).length, 100);
  assert.deepEqual(told(of(501)), ["w:3:1: At most 500 nodes, here are 501"]);
});

Deno.test("a workflow needs nodes, and a kind that isn't known is told", () => {
  assert.deepEqual(told(`${HEAD}nodes: {}\n`), [
    "w:3:1: No nodes: a workflow needs at least one",
  ]);
  assert.deepEqual(told(HEAD), ['w:1:1: Missing key "nodes"']);
  const wrong = told(
    "kind: workfow\nname: w\ninstructions: x\nmodels: { provider: ollama, preferred: m }\n",
  );
  assert.deepEqual(wrong, [
    'w:1:7: Expected one of agent, workflow, got "workfow"; did you mean `workflow`?',
  ]);
});
