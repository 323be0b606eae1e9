/**
 * An agent as a run stores it: what a suspended run is resumed from, whatever has become of its files.
 *
 * Variables are still references, so no secret value gets on disk this way. The version rises with every change that an older rnix could misread.
 */
import { z } from "zod";
import { BUILTIN_TOOLS } from "../base/builtin_tools.ts";
import { EFFECT_CLASSES, ON_UNKNOWN, RISKS } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import { workflowSpec } from "./workflow/workflow_spec.ts";
import type { AgentManifest, Family, FamilyMember, LoadedAgent } from "./agent_manifest.ts";
import type { Skill } from "./skill.ts";

/** Version of the form below. */
export const SPEC_VERSION = 3;
/** Before servers at addresses: every server was on stdio, and didn't say so. */
const STDIO_ALONE = 1;

const place = {
  provider: z.string(),
  kind: z.string().exactOptional(),
  baseUrl: z.string().exactOptional(),
  apiKeyEnv: z.string().exactOptional(),
  keyOptional: z.literal(true).exactOptional(),
  headers: z.record(z.string(), z.string()).exactOptional(),
  price: z.strictObject({
    input: z.number(),
    output: z.number(),
    cached: z.number().exactOptional(),
  }).exactOptional(),
  contextWindow: z.number().exactOptional(),
};

const limit = z.int().nonnegative().exactOptional();

const texts = z.record(z.string(), z.string());

const terms = {
  name: z.string(),
  file: z.string().exactOptional(),
  startupTimeoutMs: z.number(),
  timeoutMs: z.number(),
  maxTimeoutMs: z.number(),
  outputTokensMax: limit,
  required: z.boolean(),
  share: z.literal(false).exactOptional(),
  rules: z.strictObject({
    allow: z.array(z.string()).exactOptional(),
    effects: z.record(z.string(), z.enum(EFFECT_CLASSES)),
    risk: z.record(z.string(), z.enum(RISKS)),
    sensitive: z.array(z.string()),
  }),
};

const server = z.discriminatedUnion("transport", [
  z.strictObject({
    ...terms,
    transport: z.literal("stdio"),
    command: z.string(),
    args: z.array(z.string()),
    env: texts,
    cwd: z.string().exactOptional(),
    inheritEnv: z.array(z.string()),
  }),
  z.strictObject({
    ...terms,
    transport: z.enum(["http", "sse", "auto"]),
    url: z.string(),
    headers: texts,
  }),
]);

const manifest = z.strictObject({
  name: z.string(),
  description: z.string(),
  instructions: z.string(),
  models: z.strictObject({
    ...place,
    preferred: z.string(),
    fallback: z.strictObject({ ...place, model: z.string() }).exactOptional(),
    script: z.string().exactOptional(),
    timeoutMs: z.number(),
    maxTimeoutMs: z.number(),
  }),
  tools: z.array(z.enum(BUILTIN_TOOLS)).default([]),
  agents: z.array(z.strictObject({
    name: z.string(),
    manifest: z.string().exactOptional(),
    detach: z.boolean(),
  })).default([]),
  skills: z.array(z.string()).exactOptional(),
  agentsMd: z.literal(false).exactOptional(),
  servers: z.array(server).exactOptional(),
  budget: z.strictObject({
    turns: limit,
    tokens: limit,
    tool_calls: limit,
    duration_ms: limit,
    cost_usd: z.number().positive().exactOptional(),
  }),
  onUnknown: z.enum(ON_UNKNOWN),
  workflow: workflowSpec.exactOptional(),
}) satisfies z.ZodType<AgentManifest>;

const skill = z.strictObject({
  name: z.string(),
  description: z.string(),
  body: z.string(),
  tools: z.array(z.enum(BUILTIN_TOOLS)),
  folder: z.string(),
  files: texts,
}) satisfies z.ZodType<Skill>;

const member = {
  manifest,
  path: z.string(),
  folder: z.string(),
  script: z.string().nullable(),
  skills: z.array(skill).exactOptional(),
  notes: z.string().exactOptional(),
};

const family = z.strictObject({
  members: z.record(z.string(), z.strictObject(member)),
  links: z.record(z.string(), z.record(z.string(), z.string())),
});

const spec = z.strictObject({
  v: z.literal(SPEC_VERSION),
  ...member,
  family: family.exactOptional(),
});

type SavedMember = z.output<z.ZodObject<typeof member>>;

/** What goes into the run's spec blob. */
export function saveSpec(agent: LoadedAgent): Json {
  const content: z.input<typeof spec> = {
    v: SPEC_VERSION,
    ...toSaved(agent),
    ...agent.family === undefined ? {} : { family: savedFamily(agent.family) },
  };
  return z.json().parse(content);
}

function toSaved(agent: FamilyMember): SavedMember {
  const { manifest, path, folder, scriptText, skills, notes } = agent;
  return {
    manifest,
    path,
    folder,
    script: scriptText ?? null,
    ...skills === undefined ? {} : { skills },
    ...notes === undefined ? {} : { notes },
  };
}

function fromSaved({ script, ...member }: SavedMember): FamilyMember {
  return { ...member, ...script === null ? {} : { scriptText: script } };
}

function savedFamily({ members, links }: Family): z.input<typeof family> {
  return { members: mapValues(members, toSaved), links };
}

function mapValues<A, B>(record: { [key: string]: A }, map: (value: A) => B): { [key: string]: B } {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}

/** The agent in a spec blob. Throws INVALID when this rnix can't read it. */
export function loadSpec(blob: Json): LoadedAgent {
  const version = z.looseObject({ v: z.int() }).safeParse(blob);
  if (version.success && version.data.v > SPEC_VERSION) {
    throw new SysError(
      "INVALID",
      `The stored manifest has version ${version.data.v}; this rnix reads up to ${SPEC_VERSION}`,
      { hint: "Use the rnix that made this run, or a newer one" },
    );
  }
  const parsed = spec.safeParse(version.success ? asWrittenToday(blob, version.data.v) : blob);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue === undefined ? "" : ` at "${issue.path.join(".")}": ${issue.message}`;
    throw new SysError("INVALID", `The stored manifest can't be read${where}`);
  }
  const { family: saved, v: _, ...told } = parsed.data;
  return {
    ...fromSaved(told),
    ...saved === undefined
      ? {}
      : { family: { members: mapValues(saved.members, fromSaved), links: saved.links } },
  };
}

/** A blob of an older version as it would be written today; what doesn't fit is left to the schema. */
function asWrittenToday(blob: Json, version: number): Json {
  if (!isJsonObject(blob) || version === SPEC_VERSION) return blob;
  return { ...(version === STDIO_ALONE ? withTransports(blob) : blob), v: SPEC_VERSION };
}

function withTransports(blob: JsonObject): JsonObject {
  if (!isJsonObject(blob["manifest"])) return blob;
  const { servers } = blob["manifest"];
  const manifest = Array.isArray(servers)
    ? {
      ...blob["manifest"],
      servers: servers.map((server) =>
        isJsonObject(server) ? { ...server, transport: "stdio" } : server
      ),
    }
    : blob["manifest"];
  return { ...blob, manifest };
}
