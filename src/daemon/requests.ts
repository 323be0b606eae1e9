/** What clients may send, decoded once at the edge: everything behind it is typed. */
import { z } from "zod";
import { ON_UNKNOWN } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE, SIGNAL_NUMBERS, SUSPEND_REASONS } from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { ResumeRequest, RunRequest, UnknownDecision } from "../base/operations.ts";
import type { ServerAsk, ServerRequest } from "../base/server_operations.ts";
import type { JudgeRequest } from "../base/server_verdict.ts";
import type { VfsRequest } from "../base/vfs_operations.ts";

const json: z.ZodType<Json> = z.json();

const client = z.strictObject({
  cwd: z.string(),
  env: z.record(z.string(), z.string()),
  interactive: z.boolean(),
});

const budget = z.strictObject({
  turns: z.number().exactOptional(),
  tokens: z.number().exactOptional(),
  tool_calls: z.number().exactOptional(),
  duration_ms: z.number().exactOptional(),
  cost_usd: z.number().exactOptional(),
});

const options = {
  model: z.string().exactOptional(),
  budget: budget.exactOptional(),
  detached: z.boolean().exactOptional(),
};

const decision: z.ZodType<UnknownDecision> = z.union([
  z.strictObject({ how: z.enum(["retry", "skip", "fail"]) }),
  z.strictObject({ how: z.literal("done"), result: json.exactOptional() }),
]);

/** Body of `run`. */
export const runRequest = z.strictObject({
  manifest: z.string(),
  intent: z.string(),
  client,
  trust: z.boolean(),
  replay: z.strictObject({
    run: z.string(),
    live: z.enum(["model", "mcp"]),
    yes: z.boolean(),
  }).exactOptional(),
  parameters: z.record(z.string(), z.string()).exactOptional(),
  ...options,
}) satisfies z.ZodType<RunRequest>;

/** Body of `resume`. */
export const resumeRequest = z.strictObject({
  run: z.string(),
  intent: z.string().exactOptional(),
  client,
  unknown: z.array(
    z.strictObject({
      run: z.string().exactOptional(),
      call: z.string().exactOptional(),
      decision,
    }),
  ),
  onUnknown: z.enum(ON_UNKNOWN).exactOptional(),
  stored: z.boolean(),
  acceptCut: z.boolean(),
  fork: z.boolean(),
  fromStep: z.number().exactOptional(),
  again: z.strictObject({ node: z.string(), andAfter: z.boolean() }).exactOptional(),
  yes: z.boolean(),
  trust: z.boolean(),
  ...options,
}) satisfies z.ZodType<ResumeRequest>;

/** Body of `attach`. */
export const attachRequest = z.strictObject({
  run: z.string(),
  from: z.enum(["start", "now"]),
  interactive: z.boolean().default(false),
});

const signals = ["PAUSE", ...Object.keys(SIGNAL_NUMBERS)] as [
  "PAUSE",
  ...(keyof typeof SIGNAL_NUMBERS)[],
];

/** Body of `control`: a signal to any run, or why one at work is to be suspended. */
export const controlRequest = z.union([
  z.strictObject({ run: z.string(), signal: z.enum(signals) }),
  z.strictObject({ run: z.string(), suspend: z.enum(SUSPEND_REASONS) }),
]);

/** Body of `answer`; null: no decision. */
export const answerRequest = z.strictObject({
  id: z.string(),
  answer: z.union([decision, z.boolean(), z.null()]),
});

const jsonObject = z.record(z.string(), json);
const strings = z.record(z.string(), z.string());

const serverReference = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("configured"), name: z.string() }),
  z.strictObject({ kind: z.literal("agent"), manifest: z.string(), server: z.string() }),
  z.strictObject({
    kind: z.literal("url"),
    url: z.string(),
    headers: strings,
    transport: z.enum(["http", "sse"]).exactOptional(),
  }),
  z.strictObject({
    kind: z.literal("command"),
    command: z.string(),
    args: z.array(z.string()),
  }),
]);

/** Body of `openServer`. */
export const openServerRequest = z.strictObject({
  server: serverReference,
  client,
  elicit: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("decline") }),
    z.strictObject({ kind: z.literal("defaults") }),
    z.strictObject({ kind: z.literal("content"), content: jsonObject }),
  ]),
  trust: z.boolean(),
}) satisfies z.ZodType<ServerRequest>;

const ask = z.strictObject({
  method: z.string(),
  params: jsonObject,
  timeout_ms: z.number().positive().exactOptional(),
}) satisfies z.ZodType<ServerAsk>;

/** Body of `askServer`; `id` is the client's, for `cancelAsk`. */
export const askServerRequest = z.strictObject({ session: z.string(), id: z.string(), ask });

/** Body of `cancelAsk`. */
export const cancelAskRequest = z.strictObject({ session: z.string(), id: z.string() });

/** Servers that are judged at once: each is a process or more. */
const JUDGED_MAX = 256;

/** Body of `judgeServers`. */
export const judgeServersRequest = z.strictObject({
  servers: z.array(serverReference).max(JUDGED_MAX),
  client,
  trust: z.boolean(),
}) satisfies z.ZodType<JudgeRequest>;

/** Body of `vfs`. */
export const vfsRequest = z.strictObject({
  operation: z.enum(["list", "stat", "read", "write"]),
  path: z.string().startsWith("/"),
  pid: z.number().int().exactOptional(),
  input: json.exactOptional(),
}) satisfies z.ZodType<VfsRequest>;

/** Body of `closeServer`. */
export const closeServerRequest = z.strictObject({ session: z.string() });

/** Parses a body. Throws INVALID (exit 2) naming what is wrong. */
export function decode<T>(schema: z.ZodType<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("it isn't JSON");
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalid(issue === undefined ? "" : `${issue.path.join(".")}: ${issue.message}`);
}

function invalid(why: string): SysError {
  return new SysError("INVALID", `The request can't be read: ${why}`, { exitCode: EXIT_USAGE });
}
