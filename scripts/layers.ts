/**
 * The shape of the tree as data: which folder may import which, and which third-party library stays behind which folders.
 *
 * The lint plugin reads the first table one file at a time, `tidy.ts` the second over the whole graph.
 */

/** What each folder of `src` may import besides itself. Leaves never import each other. */
export const MAY_IMPORT: { readonly [folder: string]: readonly string[] } = {
  base: [],
  vfs: ["base"],
  journal: ["base"],
  mcp: ["base"],
  llm: ["base"],
  policy: ["base"],
  manifest: ["base"],
  kernel: ["base", "vfs", "journal", "policy"],
  devices: ["base", "vfs", "mcp", "llm", "kernel"],
  telemetry: ["base", "kernel"],
  agent: ["base", "manifest", "llm", "kernel"],
  workflow: ["base", "manifest", "kernel"],
  client: ["base"],
  daemon: [
    "base",
    "vfs",
    "journal",
    "mcp",
    "llm",
    "policy",
    "manifest",
    "kernel",
    "devices",
    "telemetry",
    "agent",
    "workflow",
  ],
  cli: ["base", "client", "manifest"],
};

/** Arrows that carry types alone: the folder names no code of the other one. */
export const TYPES_ONLY: readonly (readonly [from: string, to: string])[] = [
  ["devices", "kernel"],
  ["telemetry", "kernel"],
  ["agent", "kernel"],
  ["agent", "llm"],
  ["workflow", "kernel"],
];

/** Pure contract files whose few functions may be used where otherwise only types may: both sides must name actions alike. */
export const CONTRACT_FILES: readonly string[] = ["src/kernel/program.ts"];

/** Folders whose code must get time, randomness, environment and storage handed in, without exception. */
export const PURE_FOLDERS: readonly string[] = [
  "vfs",
  "journal",
  "policy",
  "kernel",
  "agent",
  "workflow",
];

/** Folders of `src` that may use a third-party package. A package that isn't here may be used by tests alone. */
export const LIBRARY_FOLDERS: { readonly [library: string]: readonly string[] } = {
  "@ai-sdk/anthropic": ["llm"],
  "@ai-sdk/google": ["llm"],
  "@ai-sdk/openai": ["llm"],
  "@ai-sdk/openai-compatible": ["llm"],
  "@ai-sdk/provider": ["llm"],
  "@modelcontextprotocol/client": ["mcp"],
  "ajv": ["devices"],
  "gpt-tokenizer": ["policy"],
  "smol-toml": ["manifest"],
  "yaml": ["llm", "manifest"],
  "zod": ["daemon", "manifest"],
};
