/** The built-in tools that an agent was granted, as devices of its run: `/dev/fs` in its working folder, `/dev/shell`; and its skills, as `/dev/skills`. */
import {
  BUILTIN_TOOLS,
  type BuiltinToolName,
  FILES_DEVICE,
  SHELL_DEVICE,
} from "../base/builtin_tools.ts";
import type { Clock } from "../base/clock.ts";
import type { Guard } from "../base/guard.ts";
import type { Redactor } from "../base/redaction.ts";
import { BuiltinDevice, type BuiltinTool } from "../devices/builtin.ts";
import { FILE_TOOLS, WorkingFolder } from "../devices/fs/mod.ts";
import { checkFor } from "../devices/mcp/schema_check.ts";
import { bashTool } from "../devices/shell/bash_tool.ts";
import { skillTool } from "../devices/skills/skill_tool.ts";
import type { OwnMount } from "../kernel/own_tools.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { isPassedVariable } from "../manifest/passed_variables.ts";
import { OUTPUT_TOKENS_MAX } from "../manifest/manifest_schema.ts";

export interface OwnFacts {
  clock: Clock;
  guard: () => Promise<Guard>;
  clientEnv: { [name: string]: string };
  /** The run's working folder. */
  cwd: string;
  /** What its tools must not tell. */
  secrets: Redactor;
}

/** Where the tool that tells of skills is, in a process's own view. */
const SKILLS_DEVICE = "/dev/skills";

/** An agent as far as its own tools go. */
export type OwnAgent = Pick<LoadedAgent, "manifest" | "skills">;

/** Devices for what the manifest and its skills grant. Rejects with NOT_FOUND where the working folder is gone. */
export async function ownMounts(
  { manifest, skills = [] }: OwnAgent,
  facts: OwnFacts,
): Promise<OwnMount[]> {
  const named = [...manifest.tools, ...skills.flatMap(({ tools }) => tools)];
  const tools = skills.length === 0 ? [] : [skillTool(skills)];
  return [
    ...await grantedMounts(BUILTIN_TOOLS.filter((name) => named.includes(name)), facts),
    ...mountOf(SKILLS_DEVICE, tools),
  ];
}

async function grantedMounts(
  granted: readonly BuiltinToolName[],
  facts: OwnFacts,
): Promise<OwnMount[]> {
  if (granted.length === 0) return [];
  const folder = await WorkingFolder.open(facts.cwd);
  const files = granted.flatMap((name) => FILE_TOOLS[name]?.(folder, facts.secrets) ?? []);
  const shell = granted.includes("Bash") ? [shellTool(facts, folder.root)] : [];
  return [mountOf(FILES_DEVICE, files), mountOf(SHELL_DEVICE, shell)].flat();
}

/** The shell gets the variables that every server gets, and no key of the client's. */
function shellTool({ clock, guard, clientEnv, secrets }: OwnFacts, cwd: string): BuiltinTool {
  const env = Object.fromEntries(
    Object.entries(clientEnv).filter(([name]) => isPassedVariable(name)),
  );
  return bashTool({ clock, cwd, env, secrets, keeper: guard });
}

function mountOf(path: string, tools: readonly BuiltinTool[]): OwnMount[] {
  if (tools.length === 0) return [];
  const device = new BuiltinDevice(
    tools,
    async (schema, input) => (await checkFor(schema))(input),
  );
  return [{ path, device, tools, outputTokensMax: OUTPUT_TOKENS_MAX }];
}
