/** Workflows for the crash harness: their nodes are agents that write to the world, one after another, side by side, in a list, again after a failure, and below one another. */
import type { Scenario } from "./scenario.ts";

export const WORKFLOWS: readonly Scenario[] = [
  {
    name: "a workflow like a diamond",
    onUnknown: "ask",
    turns: [],
    workflow: `
nodes:
  a: { agent: beginner, intent: Begin }
  b: { agent: left, depends_on: [a], intent: "Go on from \${{ nodes.a.result }}" }
  c: { agent: right, depends_on: [a], intent: "Go on from \${{ nodes.a.result }}" }
  d: { agent: closer, depends_on: [b, c], intent: "\${{ nodes.b.result }} \${{ nodes.c.result }}" }
`,
    agents: {
      beginner: {
        turns: [
          [{ tool: "pay", input: { to: "a" } }, { tool: "put", input: { key: 1 } }],
          "Begun.",
        ],
      },
      left: {
        turns: [
          [{ tool: "pay", input: { to: "b", ms: 6 } }],
          [{ tool: "wipe", input: { path: "b" } }],
          "Left.",
        ],
      },
      right: {
        turns: [
          [
            { tool: "pay", input: { to: "c" } },
            { tool: "get", input: { of: "c" } },
            { tool: "pay", input: { to: "c", ms: 4 } },
          ],
          "Right.",
        ],
      },
      closer: { turns: [[{ tool: "pay", input: { to: "d" } }], "Closed."] },
    },
  },
  {
    name: "a workflow through a list, two at once",
    onUnknown: "ask",
    turns: [],
    workflow: `
max_parallel: 2
nodes:
  plan: { agent: planner, intent: Plan, output: { type: array, items: { type: string } } }
  part:
    agent: reader
    depends_on: [plan]
    for_each: \${{ nodes.plan.output }}
    as: part
    intent: Read \${{ part }}
  sum: { agent: writer, depends_on: [part], intent: "Put together \${{ nodes.part.result }}" }
result: \${{ nodes.sum.result }}
`,
    agents: {
      // Its first answer doesn't fit and is asked for again.
      planner: {
        first: [[{ tool: "pay", input: { to: "e" } }], "x, y and z"],
        turns: ['["x", "y", "z"]'],
      },
      reader: { turns: [[{ tool: "pay", input: { to: "f" } }], "Read."] },
      writer: { turns: [[{ tool: "put", input: { key: 2 } }], "Written."] },
    },
  },
  {
    name: "a workflow with a node that fails at first, and one that fails for good",
    onUnknown: "ask",
    turns: [],
    workflow: `
nodes:
  late:
    agent: latecomer
    intent: Try
    retry: { attempts: 3, backoff: 20ms }
  lost: { agent: loser, intent: Try, on_failure: continue }
  behind: { agent: writer, depends_on: [lost], intent: "After \${{ nodes.lost.result }}" }
  last:
    agent: writer
    depends_on: { late: completed, lost: ended, behind: ended }
    intent: "\${{ nodes.late.result }} \${{ nodes.behind.status }}"
`,
    agents: {
      latecomer: {
        first: [[{ tool: "pay", input: { to: "g" } }], { withheld: "No" }],
        turns: [[{ tool: "pay", input: { to: "h" } }], "At last."],
      },
      loser: { turns: [[{ tool: "pay", input: { to: "i", ms: 30 } }], { withheld: "Never" }] },
      writer: { turns: [[{ tool: "put", input: { key: 3 } }], "Written."] },
    },
  },
  {
    name: "a workflow in a workflow",
    onUnknown: "ask",
    turns: [],
    workflow: `
nodes:
  beside: { agent: payer, intent: Pay }
  inner: { workflow: deeper, intent: Go deeper }
  after: { agent: payer, depends_on: [beside, inner], intent: "Pay for \${{ nodes.inner.result }}" }
`,
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "j" } }], "Paid."] },
      deeper: {
        turns: [],
        workflow: `
nodes:
  one: { agent: payer, intent: "\${{ intent }}" }
  two: { agent: payer, depends_on: [one], intent: "\${{ nodes.one.result }}" }
`,
      },
    },
  },
  {
    name: "a workflow with a lost call in a node",
    onUnknown: "ask",
    suspends: "unknown-outcome",
    turns: [],
    workflow: `
nodes:
  a: { agent: payer, intent: Pay }
  b: { agent: unlucky, intent: Pay }
  c: { agent: payer, depends_on: [a, b], intent: "\${{ nodes.b.result }}" }
`,
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "k", ms: 8 } }], "Paid."] },
      unlucky: {
        turns: [
          [{ tool: "pay_dropped", input: { to: "l" } }, { tool: "pay", input: { to: "m" } }],
          "Paid.",
        ],
      },
    },
  },
  {
    name: "Ctrl-C while a workflow's nodes work, and one waits to be tried again",
    onUnknown: "ask",
    suspends: "paused",
    stopAt: { ms: 18, reason: "paused" },
    turns: [],
    workflow: `
nodes:
  late: { agent: latecomer, intent: Try, retry: { attempts: 2, backoff: 30ms } }
  slow: { agent: payer, intent: Pay }
  last: { agent: payer, depends_on: [late, slow], intent: "\${{ nodes.late.result }}" }
`,
    agents: {
      latecomer: {
        first: [{ withheld: "No" }],
        turns: [[{ tool: "wipe", input: { path: "n" } }], "At last."],
      },
      payer: { turns: [[{ tool: "pay", input: { to: "o", ms: 20 } }], "Paid."] },
    },
  },
  {
    name: "Ctrl-C while a workflow goes through a list",
    onUnknown: "ask",
    suspends: "paused",
    stopAt: { ms: 12, reason: "paused" },
    turns: [],
    workflow: `
max_parallel: 2
nodes:
  first: { agent: payer, intent: Pay }
  each: { agent: payer, depends_on: [first], for_each: [1, 2], intent: "Pay for \${{ item }}" }
  last: { agent: asker, depends_on: [each], intent: Ask }
result: \${{ nodes.last.result }} \${{ nodes.first.result }}
`,
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "w", ms: 5 } }], "Paid."] },
      asker: { turns: [[{ tool: "put", input: { key: 8 } }], "Asked."] },
    },
  },
  {
    name: "a workflow that fails, and is taken up again",
    onUnknown: "ask",
    fails: true,
    turns: [],
    workflow: `
nodes:
  early: { agent: payer, intent: Pay }
  late: { agent: latecomer, depends_on: [early], intent: Try }
  slow: { agent: payer, depends_on: [early], intent: Pay }
  last: { agent: closer, depends_on: [late, slow], intent: "\${{ nodes.late.result }}" }
`,
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "p", ms: 9 } }], "Paid."] },
      // It goes on after its failure: what it paid before stays paid once.
      latecomer: {
        turns: [
          [{ tool: "pay", input: { to: "q" } }],
          { withheld: "No" },
          [{ tool: "pay", input: { to: "r" } }],
          "At last.",
        ],
      },
      closer: { turns: [[{ tool: "wipe", input: { path: "s" } }], "Closed."] },
    },
  },
];
