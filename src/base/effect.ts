/** Effect classes, risks and the local rules of a server's tools (design, section 10). A server's own annotations are shown, never trusted. */

/** From harmless to harmful. `read`: no effect. `idempotent`: twice is the same as once. `write`, `destructive`: never twice. */
export const EFFECT_CLASSES = ["read", "idempotent", "write", "destructive"] as const;
export type EffectClass = (typeof EFFECT_CLASSES)[number];

export const RISKS = ["low", "medium", "high", "critical"] as const;
export type Risk = (typeof RISKS)[number];

/** What to do with a call whose outcome is unknown and that can't simply be repeated. */
export const ON_UNKNOWN = ["ask", "retry", "skip", "fail"] as const;
export type OnUnknown = (typeof ON_UNKNOWN)[number];

/** What a manifest says about the tools of one server. */
export interface ToolRules {
  /** Globs (`*` only) of the tools a process may use; absent: all. */
  allow?: string[];
  /** By tool name or glob; an exact name wins over a glob, an earlier glob over a later one. */
  effects: { [tool: string]: EffectClass };
  risk: { [tool: string]: Risk };
  /** Globs of tools whose arguments and results are masked in trace and logs. */
  sensitive: string[];
}
