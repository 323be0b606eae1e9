/** What the crash harness runs: each a short agent run with what can go wrong in it. */
import type { OnUnknown } from "../../src/base/effect.ts";
import type { Turn } from "./world.ts";

export interface Scenario {
  name: string;
  turns: Turn[];
  onUnknown: OnUnknown;
}

const FINAL = "All is done.";

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
    name: "a checkpoint",
    onUnknown: "ask",
    turns: [
      ...Array.from({ length: 20 }, (_, page): Turn => [{ tool: "report", input: { page } }]),
      [{ tool: "pay", input: { to: "j" } }],
      FINAL,
    ],
  },
];
