/** The tools of the world: what each may do, and what becomes of a call to it. */
import type { EffectClass } from "../../src/base/effect.ts";
import type { OwnMount } from "../../src/kernel/own_tools.ts";
import type { Device, ToolDefinition } from "../../src/vfs/device.ts";

/**
 * What a tool does besides answering. `relist`: its server comes to have other tools; `relist-drop`: it goes with the call, and comes back with other tools; `unsent-once`: it isn't reached the first time.
 */
export type Behaviour =
  | "answer"
  | "fail"
  | "drop"
  | "drop-once"
  | "time-out"
  | "big"
  | "answer-late"
  | "relist"
  | "relist-drop";

export const SERVER = "world";

/** Listed until the server is told to drop it. */
export const PASSING_TOOL = "passing";

export const TOOLS: { readonly [name: string]: { effect: EffectClass; does: Behaviour } } = {
  get: { effect: "read", does: "answer" },
  get_dropped_once: { effect: "read", does: "drop-once" },
  put: { effect: "idempotent", does: "answer" },
  put_dropped: { effect: "idempotent", does: "drop" },
  pay: { effect: "write", does: "answer" },
  pay_dropped: { effect: "write", does: "drop" },
  pay_slowly: { effect: "write", does: "time-out" },
  wipe: { effect: "destructive", does: "answer" },
  refuse: { effect: "write", does: "fail" },
  pay_late: { effect: "write", does: "answer-late" },
  pay_too_late: { effect: "write", does: "answer-late" },
  report: { effect: "write", does: "big" },
  pay_relisted: { effect: "write", does: "relist" },
  put_reconnected: { effect: "idempotent", does: "relist-drop" },
  [PASSING_TOOL]: { effect: "read", does: "answer" },
};

/** Tools of rnix itself, as their classes are. */
const OWN_TOOLS: { readonly [name: string]: { effect: EffectClass; does: Behaviour } } = {
  Write: { effect: "idempotent", does: "answer" },
  Edit: { effect: "write", does: "answer" },
  Bash: { effect: "write", does: "answer" },
};

/** What is known of a tool, of whichever kind. */
export function toolFacts(name: string): { effect: EffectClass; does: Behaviour } {
  return TOOLS[name] ?? OWN_TOOLS[name] ?? { effect: "write", does: "answer" };
}

/** Name by which a script's tool is called: an agent and a tool of rnix itself have theirs, all others are the server's. */
export function calledName(tool: string): string {
  return /^[A-Z]|^agent__/.test(tool) ? tool : `mcp__${SERVER}__${tool}`;
}

export function definition(name: string): ToolDefinition {
  return { name, modelName: `mcp__${SERVER}__${name}`, inputSchema: { type: "object" } };
}

/** The tools of rnix itself on a device of the world. */
export function ownMount(device: Device): OwnMount {
  return {
    path: "/dev/world",
    device,
    tools: Object.entries(OWN_TOOLS).map(([name, { effect }]) => ({
      definition: { name, modelName: name, inputSchema: { type: "object" } },
      effect,
    })),
    outputTokensMax: undefined,
  };
}
