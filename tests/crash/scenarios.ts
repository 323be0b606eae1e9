/** What the crash harness runs: each a short agent run with what can go wrong in it. */
import type { Budget } from "../../src/base/budget.ts";
import type { OnUnknown } from "../../src/base/effect.ts";
import type { SuspendReason } from "../../src/base/exit.ts";
import { sha256Hex } from "../../src/base/json.ts";
import type { Workflow, WorkflowNode } from "../../src/manifest/workflow/workflow.ts";
import { READ_RESULT, resultName } from "../../src/policy/result_piece.ts";
import { type AgentFacts, answerText, type Turn } from "./world.ts";

export interface Scenario {
  name: string;
  turns: Turn[];
  onUnknown: OnUnknown;
  /** Limits of the run; a run that they suspend is resumed without them. */
  budget?: Budget;
  /** Results over so many tokens are cut. */
  resultTokensMax?: number;
  /** Window of the model, tokens. */
  contextWindow?: number;
  /** Characters of a history over which the model refuses it, and so many of a request for a summary. */
  refuses?: { charsMax: number; summaryCharsMax: number };
  /** Reason for which the uncut run is suspended on its way. */
  suspends?: SuspendReason;
  /** Suspended from outside so long after its start, milliseconds. */
  stopAt?: { ms: number; reason: SuspendReason };
  /** A person writes to a device this long after the start, milliseconds. */
  operatorAtMs?: number;
  /** Agents that it may start, and these one another. */
  agents?: { readonly [name: string]: AgentFacts };
  /** The run is a workflow, whose nodes are its agents; it has no turns then. */
  workflow?: Workflow;
  /** Has tools of rnix itself. */
  hasOwnTools?: true;
  /** Turn (from 0) at which the provider is down for as long as one process tries. */
  modelDownAt?: number;
  /** The mount (from 1) that fails. */
  mountFailsAt?: number;
  /** Part of the points that come too early to matter and are only sampled, 0 to 1. */
  dull?: number;
}
import { PASSING_TOOL } from "./world_tools.ts";

const LONG = { of: Array.from({ length: 200 }, (_, word) => word).join(" ") };
/** The name under which the answer to it is read. */
const LONG_NAME = resultName(sha256Hex(answerText("get", LONG, "answer")));

const FINAL = "All is done.";

function node(name: string, agent: string, after: string[] = []): WorkflowNode {
  const rules = { retry: { attempts: 1, backoffMs: 1_000 }, onFailure: "stop" as const };
  return { name, agent, intent: `Do ${name}`, after, as: "item", ...rules };
}

function workflowOf(...nodes: WorkflowNode[]): Workflow {
  const result = "${{ nodes.last.output }} ${{ nodes.first.output }}";
  return { nodes, parameters: [], maxParallel: 2, intent: "", result, values: {} };
}
/** Of the dull points one in so many is taken. */
export const DULL_EVERY = 12;

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "sequential calls",
    onUnknown: "ask",
    turns: [
      [{ tool: "pay", input: { to: "a" } }],
      [{ tool: "get", input: { of: "a" } }],
      [{ tool: "put", input: { key: 1 } }],
      [{ tool: "wipe", input: { path: "x" } }],
      FINAL,
    ],
  },
  {
    name: "parallel calls with mixed effects",
    onUnknown: "ask",
    turns: [
      [
        { tool: "pay", input: { to: "a", ms: 4 } },
        { tool: "get", input: { of: "b" } },
        { tool: "put", input: { key: 2, ms: 2 } },
        { tool: "wipe", input: { path: "y" } },
        { tool: "pay", input: { to: "a", ms: 4 } },
      ],
      [{ tool: "get", input: { of: "c" } }, { tool: "pay", input: { to: "c" } }],
      FINAL,
    ],
  },
  {
    name: "tool errors and calls that can't be sent",
    onUnknown: "ask",
    turns: [
      [{ tool: "refuse", input: {} }, { tool: "no_such_tool", input: {} }],
      [{ tool: "pay", input: { to: "d" } }],
      [{ tool: "refuse", input: {} }],
      FINAL,
    ],
  },
  {
    name: "a result in a blob",
    onUnknown: "ask",
    turns: [
      [{ tool: "report", input: { pages: "y".repeat(70_000) } }],
      [{ tool: "pay", input: { to: "e" } }],
      FINAL,
    ],
  },
  {
    name: "a cut result, read in pieces",
    onUnknown: "ask",
    resultTokensMax: 130,
    turns: [
      [{ tool: "get", input: LONG }],
      [
        { tool: READ_RESULT, input: { result: LONG_NAME, offset: 300 } },
        { tool: "pay", input: { to: "t" } },
      ],
      [{ tool: READ_RESULT, input: { result: LONG_NAME, offset: 600, limit: 20 } }],
      FINAL,
    ],
  },
  {
    name: "a history that is compacted, twice",
    onUnknown: "ask",
    contextWindow: 1_500,
    turns: [
      [{ tool: "pay", input: { to: "u", why: "w".repeat(900) } }],
      [{ tool: "get", input: { of: "v".repeat(900) } }],
      [{ tool: "pay", input: { to: "x" } }, { tool: "put", input: { key: 8 } }],
      [{ tool: "pay", input: { to: "z", why: "w".repeat(900) } }],
      [{ tool: "wipe", input: { path: "w".repeat(900) } }],
      FINAL,
    ],
  },
  {
    name: "a history that the model refuses, and its summary too",
    onUnknown: "ask",
    refuses: { charsMax: 5_800, summaryCharsMax: 10 },
    turns: [
      [{ tool: "get", input: { of: "v".repeat(2_000) } }],
      [{ tool: "pay", input: { to: "a", why: "w".repeat(900) } }],
      [{ tool: "pay", input: { to: "b" } }],
      FINAL,
    ],
  },
  {
    name: "a lost connection",
    onUnknown: "skip",
    turns: [
      [{ tool: "pay_dropped", input: { to: "f" } }, { tool: "pay", input: { to: "g" } }],
      [{ tool: "get_dropped_once", input: {} }],
      [{ tool: "put_dropped", input: { key: 3 } }],
      FINAL,
    ],
  },
  {
    name: "a timeout",
    onUnknown: "skip",
    turns: [
      [{ tool: "pay_slowly", input: { to: "h" } }, { tool: "pay", input: { to: "i" } }],
      FINAL,
    ],
  },
  {
    name: "an answer that comes late",
    onUnknown: "ask",
    turns: [
      [{ tool: "pay_late", input: { to: "k" } }, { tool: "pay", input: { to: "l", ms: 9 } }],
      [{ tool: "put", input: { key: 4 } }],
      FINAL,
    ],
  },
  {
    name: "an answer that comes too late",
    onUnknown: "skip",
    turns: [
      [{ tool: "pay_too_late", input: { to: "r" } }, { tool: "pay", input: { to: "s", ms: 9 } }],
      [{ tool: "put", input: { key: 7 } }],
      FINAL,
    ],
  },
  {
    name: "a limit and a higher one",
    onUnknown: "ask",
    suspends: "limit",
    budget: { turns: 2, tool_calls: 3 },
    turns: [
      [{ tool: "pay", input: { to: "m" } }, { tool: "get", input: { of: "m" } }],
      [{ tool: "pay", input: { to: "n" } }, { tool: "put", input: { key: 5 } }],
      [{ tool: "wipe", input: { path: "z" } }],
      FINAL,
    ],
  },
  {
    name: "Ctrl-C in mid-run",
    onUnknown: "ask",
    suspends: "paused",
    stopAt: { ms: 9, reason: "paused" },
    turns: [
      [{ tool: "pay", input: { to: "o" } }],
      [
        { tool: "pay", input: { to: "p", ms: 60 } },
        { tool: "pay", input: { to: "q", ms: 10 } },
        { tool: "get", input: { of: "q", ms: 60 } },
      ],
      [{ tool: "put", input: { key: 6 } }],
      FINAL,
    ],
  },
  {
    name: "a person who writes to a device",
    onUnknown: "ask",
    operatorAtMs: 6,
    turns: [
      [{ tool: "pay", input: { to: "u", ms: 8 } }, { tool: "get", input: { of: "u" } }],
      [{ tool: "put", input: { key: 8 } }],
      [{ tool: "pay", input: { to: "v" } }],
      FINAL,
    ],
  },
  {
    name: "a server that comes back with other tools",
    onUnknown: "ask",
    turns: [
      [{ tool: PASSING_TOOL, input: {} }, { tool: "pay", input: { to: "a" } }],
      [{ tool: "put_reconnected", input: { key: 9 } }, { tool: "pay", input: { to: "b" } }],
      [{ tool: PASSING_TOOL, input: {} }, { tool: "get", input: { of: "b" } }],
      FINAL,
    ],
  },
  {
    name: "tools that change between turns",
    onUnknown: "ask",
    turns: [
      [{ tool: "pay_relisted", input: { to: "a" } }, { tool: "pay", input: { to: "b", ms: 5 } }],
      [{ tool: PASSING_TOOL, input: {} }],
      FINAL,
    ],
  },
  {
    name: "tools of rnix itself",
    onUnknown: "ask",
    hasOwnTools: true,
    turns: [
      [{ tool: "Write", input: { path: "a" } }, { tool: "Bash", input: { command: "make" } }],
      [{ tool: "Edit", input: { path: "a" } }],
      [{ tool: "Bash", input: { command: "test" } }, { tool: "Edit", input: { path: "b" } }],
      FINAL,
    ],
  },
  {
    name: "a lost call that a person decides on",
    onUnknown: "ask",
    suspends: "unknown-outcome",
    turns: [
      [{ tool: "pay_dropped", input: { to: "a" } }, { tool: "pay", input: { to: "b" } }],
      [{ tool: "put", input: { key: 2 } }],
      FINAL,
    ],
  },
  {
    name: "a provider that is down",
    onUnknown: "ask",
    suspends: "model",
    modelDownAt: 1,
    turns: [
      [{ tool: "pay", input: { to: "a" } }],
      [{ tool: "pay", input: { to: "b" } }, { tool: "put", input: { key: 3 } }],
      FINAL,
    ],
  },
  {
    name: "a shutdown, and a server that doesn't come up again",
    onUnknown: "ask",
    suspends: "mount",
    stopAt: { ms: 9, reason: "shutdown" },
    mountFailsAt: 2,
    turns: [
      [{ tool: "pay", input: { to: "a" } }],
      [{ tool: "pay", input: { to: "b", ms: 40 } }, { tool: "put", input: { key: 4, ms: 40 } }],
      FINAL,
    ],
  },
  {
    name: "a client that goes",
    onUnknown: "skip",
    suspends: "detached",
    stopAt: { ms: 7, reason: "detached" },
    turns: [
      [{ tool: "pay_dropped", input: { to: "a" } }, { tool: "get", input: { of: "a", ms: 40 } }],
      [{ tool: "put", input: { key: 5 } }],
      FINAL,
    ],
  },
  {
    name: "agents that start agents",
    onUnknown: "ask",
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "c" } }], "Paid."] },
      asker: {
        turns: [
          [{ tool: "put", input: { key: 6 } }, { tool: "agent__payer", input: { intent: "Pay" } }],
          "Asked.",
        ],
      },
    },
    turns: [
      [
        { tool: "agent__asker", input: { intent: "Ask" } },
        { tool: "agent__payer", input: { intent: "Pay" } },
        { tool: "pay", input: { to: "d" } },
      ],
      [{ tool: "wipe", input: { path: "x" } }],
      FINAL,
    ],
  },
  {
    name: "an agent whose call is lost",
    onUnknown: "ask",
    suspends: "unknown-outcome",
    agents: {
      payer: {
        turns: [
          [{ tool: "pay_dropped", input: { to: "e" } }, { tool: "pay", input: { to: "f" } }],
          "Paid.",
        ],
      },
    },
    turns: [
      [
        { tool: "agent__payer", input: { intent: "Pay" } },
        { tool: "pay", input: { to: "g", ms: 20 } },
      ],
      FINAL,
    ],
  },
  {
    name: "a workflow of agents, one of them for every item",
    onUnknown: "ask",
    suspends: "paused",
    stopAt: { ms: 12, reason: "paused" },
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "w", ms: 5 } }], "Paid."] },
      asker: { turns: [[{ tool: "put", input: { key: 8 } }], "Asked."] },
    },
    workflow: workflowOf(
      node("first", "payer"),
      { ...node("each", "payer", ["first"]), forEach: { list: [1, 2] } },
      node("last", "asker", ["each"]),
    ),
    turns: [],
  },
  {
    name: "Ctrl-C while agents work, one of them on its own",
    onUnknown: "ask",
    suspends: "paused",
    stopAt: { ms: 16, reason: "paused" },
    agents: {
      payer: { turns: [[{ tool: "pay", input: { to: "h", ms: 30 } }], "Paid."] },
      watcher: { turns: [[{ tool: "pay", input: { to: "i", ms: 60 } }], "Watched."], detach: true },
    },
    turns: [
      [
        { tool: "agent__payer", input: { intent: "Pay" } },
        { tool: "agent__watcher", input: { intent: "Watch" } },
      ],
      [{ tool: "put", input: { key: 7 } }],
      FINAL,
    ],
  },
  {
    name: "a checkpoint",
    onUnknown: "ask",
    dull: 0.78,
    turns: [
      ...Array.from({ length: 17 }, (_, page): Turn => [{ tool: "report", input: { page } }]),
      [{ tool: "pay", input: { to: "j" } }],
      FINAL,
    ],
  },
];
