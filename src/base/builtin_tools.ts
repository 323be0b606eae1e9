/** Tools that rnix has itself, by the names that a manifest and a model use. None is there unless a manifest or a skill grants it. */
import type { EffectClass } from "./effect.ts";

export const BUILTIN_TOOLS = ["Read", "Write", "Edit", "Glob", "Grep", "Bash"] as const;

export type BuiltinToolName = (typeof BUILTIN_TOOLS)[number];

/** What each does to the world; whole-file writes give the same file however often they are done. */
export const BUILTIN_EFFECTS: { readonly [name in BuiltinToolName]: EffectClass } = {
  Read: "read",
  Write: "idempotent",
  Edit: "write",
  Glob: "read",
  Grep: "read",
  Bash: "destructive",
};

/** Devices of the built-in tools, in a process's own view. */
export const FILES_DEVICE = "/dev/fs";
export const SHELL_DEVICE = "/dev/shell";

/** Model-facing name of the tool that is a child agent. */
export function agentToolName(agent: string): string {
  return `${AGENT_TOOL_PREFIX}${agent}`;
}

export const AGENT_TOOL_PREFIX = "agent__";
