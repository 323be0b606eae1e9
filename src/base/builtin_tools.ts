/** Tools that rnix has itself, by the names that a manifest and a model use. None is there unless a manifest or a skill grants it. */
export const BUILTIN_TOOLS = ["Read", "Write", "Edit", "Glob", "Grep", "Bash"] as const;

export type BuiltinToolName = (typeof BUILTIN_TOOLS)[number];
