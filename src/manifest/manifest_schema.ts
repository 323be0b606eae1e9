/**
 * The shape of `agent.yaml` as a schema: which keys there are, what each holds, and its default.
 *
 * What one schema can't say (names of servers, keys that depend on each other, keys not built yet) is in `manifest_rules.ts` and `not_built.ts`.
 */
import { z } from "zod";
import { BUILTIN_TOOLS } from "../base/builtin_tools.ts";
import { TIMER_MS_MAX } from "../base/clock.ts";
import { DURATION_EXAMPLES, formatDuration, parseDuration } from "../base/duration.ts";
import { EFFECT_CLASSES, ON_UNKNOWN, RISKS } from "../base/effect.ts";
import { isName, NAME_RULE } from "./names.ts";
import { isVariableName, parseTemplate } from "./template.ts";

/** Values of `transport_type`. */
export const TRANSPORT_TYPES = ["stdio", "http", "sse"] as const;

export const STARTUP_TIMEOUT_MS = 30_000;
export const REQUEST_TIMEOUT_MS = 30_000;
export const REQUEST_TIMEOUT_IN_ALL_MS = 600_000;
/** Tokens of text that one result brings the model, where the manifest doesn't say. */
export const OUTPUT_TOKENS_MAX = 25_000;
export const MODEL_TIMEOUT_MS = 300_000;
export const MODEL_TIMEOUT_IN_ALL_MS = 600_000;
/** No larger: a millisecond count of a hundred years. */
const DURATION_MS_MAX = 100 * 366 * 24 * 3_600_000;

/** Text that fulfils a condition; `fault` says what is wrong with it, or nothing. */
function text(fault: (value: string) => string | undefined) {
  return z.string().superRefine((value, context) => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });
}

function plainFault(value: string): string | undefined {
  if (value.trim() === "") return "Expected some text, got an empty one";
  return value.includes("\0") ? "A NUL character can't be passed on" : undefined;
}

/** Text that isn't empty. */
export const plain = text(plainFault);

function templateFault(value: string): string | undefined {
  if (value.includes("\0")) return "A NUL character can't be passed on";
  const { faults } = parseTemplate(value);
  return faults.length === 0 ? undefined : faults.join("; ");
}

/** May be empty, may hold `${VAR}`. */
export const template = text(templateFault);

const path = text((value) => {
  if (value.startsWith("~/") || value === "~") {
    return `"~" is not expanded here; write "\${HOME}${value.slice(1)}"`;
  }
  return plainFault(value) ?? templateFault(value);
});

function duration(longestMs: number) {
  return z.unknown().transform((value, context) => {
    const ms = typeof value === "string" ? parseDuration(value) : undefined;
    if (ms !== undefined && ms > 0 && ms <= longestMs) return ms;
    const shown = typeof value === "object" ? "something else" : JSON.stringify(value);
    const message = ms !== undefined && ms > longestMs
      ? `Expected at most ${formatDuration(longestMs)}, got ${shown}`
      : `Expected a duration such as ${DURATION_EXAMPLES}, got ${shown}`;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  });
}

/** A time that a timer can hold. */
export const timerDuration = duration(Math.floor(TIMER_MS_MAX / 3_600_000) * 3_600_000);
/** A whole number from 1 on. */
export const count = z.int().min(1);

/** The name of an agent or of a workflow. */
export const agentName = text((value) =>
  isName(value) ? undefined : `Invalid name "${value}": use ${NAME_RULE}`
);
/** The name of an environment variable. */
export const variableName = text((value) =>
  isVariableName(value) ? undefined : `Invalid variable name "${value}"`
);
/** The name of the variable that a provider's key is in. What stands there by mistake may be the key. */
export const keyVariable = text((value) =>
  isVariableName(value)
    ? undefined
    : "Expected the name of the variable that holds the key, not the key itself"
);
const toolPattern = text((value) =>
  value === "" || /\s/.test(value)
    ? `Expected a tool's name, with * for any letters, got "${value}"`
    : undefined
);

/** An http or https URL, or one that holds `${VAR}`. */
export const baseUrl = text(urlFault);

function urlFault(value: string): string | undefined {
  const fault = plainFault(value) ?? templateFault(value);
  if (fault !== undefined || value.includes("$")) return fault;
  return URL.canParse(value) && /^https?:/.test(value)
    ? undefined
    : `Expected a URL that begins with http:// or https://, got "${value}"`;
}

/** The address of a server. What it becomes with its variables is looked at again (`expand.ts`). */
const serverUrl = text((value) => {
  const fault = urlFault(value);
  if (fault !== undefined || value.includes("$") || !holdsLogin(new URL(value))) return fault;
  return 'A user name or a password in a URL would show in logs; put it into "headers"';
});

/** Whether a URL carries a user name or a password. */
export function holdsLogin({ username, password }: URL): boolean {
  return username + password !== "";
}

/** May hold `${VAR}`; the rest are characters that a header can carry. */
const headerValue = text((value) => templateFault(value) ?? headerFault(value));

/** What keeps a text from being the value of a header: fetch refuses it, or it would end the header. */
export function headerFault(value: string): string | undefined {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return undefined;
  return /[\u0100-\uffff]/.test(value)
    ? "The value of a header can't hold characters outside Latin-1"
    : "The value of a header can't hold line ends or control characters";
}

/** `models`. */
export const modelsSchema = z.strictObject({
  provider: plain.optional(),
  preferred: plain.optional(),
  fallback: plain.optional(),
  fallback_provider: plain.optional(),
  base_url: baseUrl.optional(),
  api_key_env: keyVariable.optional(),
  script: plain.optional(),
  timeout: timerDuration.optional(),
  max_timeout: timerDuration.optional(),
});

/** `mcp.servers.<name>.tools`. */
export const toolRulesSchema = z.strictObject({
  allow: z.array(toolPattern).optional(),
  effects: z.record(z.string(), z.enum(EFFECT_CLASSES)).default({}),
  risk: z.record(z.string(), z.enum(RISKS)).default({}),
  sensitive: z.array(toolPattern).default([]),
});

/** `mcp.servers.<name>`, and `servers.<name>` of `mcp.yaml`. Which keys go together is a matter of `server_rules.ts`. */
export const serverSchema = z.strictObject({
  command: path.optional(),
  args: z.array(template).default([]),
  env: z.record(z.string(), template).default({}),
  cwd: path.optional(),
  inherit_env: z.array(variableName).default([]),
  url: serverUrl.optional(),
  headers: z.record(z.string(), headerValue).default({}),
  startup_timeout: timerDuration.default(STARTUP_TIMEOUT_MS),
  timeout: timerDuration.optional(),
  max_timeout: timerDuration.optional(),
  /** 0: no limit. */
  max_output_tokens: z.int().min(0).default(OUTPUT_TOKENS_MAX),
  required: z.boolean().default(true),
  share: z.boolean().default(true),
  transport_type: z.enum(TRANSPORT_TYPES).optional(),
  tools: toolRulesSchema.default({ effects: {}, risk: {}, sensitive: [] }),
});

/** `mcp`. */
export const mcpSchema = z.strictObject({ servers: z.record(z.string(), serverSchema).optional() });

/** `budget`. */
export const budgetSchema = z.strictObject({
  turns: count.optional(),
  tokens: count.optional(),
  tool_calls: count.optional(),
  duration: duration(DURATION_MS_MAX).optional(),
  cost_usd: z.number().positive().optional(),
});

/** An agent that this one may start, where its name alone doesn't say all. */
export const agentSchema = z.strictObject({
  name: agentName,
  manifest: path.optional(),
  detach: z.boolean().default(false),
});

/** The whole file. */
export const manifestSchema = z.strictObject({
  kind: z.enum(["agent", "workflow"]).optional(),
  name: agentName,
  description: plain.default(""),
  instructions: plain.optional(),
  models: modelsSchema.optional(),
  tools: z.array(z.enum(BUILTIN_TOOLS)).default([]),
  skills: z.array(plain).default([]),
  agents_md: z.boolean().default(true),
  agents: z.array(z.union([agentName, agentSchema])).default([]),
  mcp: mcpSchema.optional(),
  budget: budgetSchema.default({}),
  on_unknown: z.enum(ON_UNKNOWN).default("ask"),
});

/** A file that fits the schema. */
export type ManifestFile = z.output<typeof manifestSchema>;
/** `models` of a file that fits the schema. */
export type ModelsFile = z.output<typeof modelsSchema>;
export type ServerFile = z.output<typeof serverSchema>;

/** Known keys of each mapping, by path; `*` stands for any server. */
export const KNOWN_KEYS: { readonly [path: string]: readonly string[] } = {
  "": Object.keys(manifestSchema.shape),
  "models": Object.keys(modelsSchema.shape),
  "mcp": Object.keys(mcpSchema.shape),
  "mcp.servers.*": Object.keys(serverSchema.shape),
  "mcp.servers.*.tools": Object.keys(toolRulesSchema.shape),
  "budget": Object.keys(budgetSchema.shape),
  "agents.*": Object.keys(agentSchema.shape),
};
