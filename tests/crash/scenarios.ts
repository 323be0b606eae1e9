/** What the crash harness runs: each a short agent run with what can go wrong in it. */
import { sha256Hex } from "../../src/base/json.ts";
import { READ_RESULT, resultName } from "../../src/policy/result_piece.ts";
import type { Scenario } from "./scenario.ts";
import { WORKFLOWS } from "./workflow_scenarios.ts";
import { answerText, type Turn } from "./world.ts";
import { PASSING_TOOL } from "./world_tools.ts";

export type { Scenario };

const LONG = { of: Array.from({ length: 200 }, (_, word) => word).join(" ") };
/** The name under which the answer to it is read. */
const LONG_NAME = resultName(sha256Hex(answerText("get", LONG, "answer")));

const FINAL = "All is done.";
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
  ...WORKFLOWS,
];
