/** An agent's manifest after parsing: every value checked and in one unit, `${VAR}` still unexpanded. This is what a run's spec blob holds. */
import type { BuiltinToolName } from "../base/builtin_tools.ts";
import type { Budget, Price } from "../base/budget.ts";
import type { OnUnknown, ToolRules } from "../base/effect.ts";
import type { PlaceOf } from "./places.ts";
import type { ProjectFile } from "./project_folder.ts";
import type { Workflow } from "./workflow/workflow.ts";
import type { Skill } from "./skill.ts";

/** What holds for a server of any kind. */
export interface ServerTerms {
  name: string;
  /** Absolute path of the `mcp.yaml` that it comes from, whose folder its relative paths start from. Absent: it is of the manifest itself. */
  file?: string;
  startupTimeoutMs: number;
  timeoutMs: number;
  maxTimeoutMs: number;
  /** Tokens of text of one result; absent: no limit. */
  outputTokensMax?: number;
  required: boolean;
  /** A server of its own, even where another process of the tree has the same one. */
  share?: false;
  rules: ToolRules;
}

/** A server that is started and spoken to on stdin and stdout. */
export interface StdioServerConfig extends ServerTerms {
  transport: "stdio";
  command: string;
  args: string[];
  env: { [name: string]: string };
  /** Relative to the folder of its file; undefined: the run's folder. */
  cwd?: string;
  inheritEnv: string[];
}

/** A server at an address. `auto`: Streamable HTTP first, then legacy HTTP+SSE. */
export interface HttpServerConfig extends ServerTerms {
  transport: "http" | "sse" | "auto";
  url: string;
  headers: { [name: string]: string };
}

/** A server as it is configured, `${VAR}` unexpanded. */
export type ServerConfig = StdioServerConfig | HttpServerConfig;

/** Where a model is and what is known of it, `providers.yaml` taken into account. */
export interface ModelPlace {
  /** Its name in the configuration. */
  provider: string;
  /** What it speaks, where that isn't its name. */
  kind?: string;
  baseUrl?: string;
  apiKeyEnv?: string;
  /** The key need not be set. */
  keyOptional?: true;
  headers?: { [name: string]: string };
  price?: Price;
  /** Tokens. */
  contextWindow?: number;
}

export interface ModelConfig extends ModelPlace {
  preferred: string;
  /** Asked where the preferred model can't serve. */
  fallback?: ModelPlace & { model: string };
  /** Script of the `scripted` provider, manifest-relative. */
  script?: string;
  /** How long a request may bring nothing. */
  timeoutMs: number;
  /** One request, in all. */
  maxTimeoutMs: number;
}

/** An agent that another one may start. */
export interface ChildAgent {
  /** Unique among those of its parent. */
  name: string;
  /** Manifest-relative path; without it the agent is found by its name. */
  manifest?: string;
  /** It goes on by itself once it is started. */
  detach: boolean;
}

export interface AgentManifest {
  name: string;
  description: string;
  instructions: string;
  models: ModelConfig;
  /** Built-in tools that are granted, each once. */
  tools: BuiltinToolName[];
  /** Agents that this one may start, in the order of the file. */
  agents: ChildAgent[];
  /** Names of its skills, each once; absent: none. */
  skills?: string[];
  /** The project's AGENTS.md isn't told to it; absent: it is. */
  agentsMd?: false;
  /** In the order of the file. `undefined`: no `mcp` key; empty: `mcp: {}`. */
  servers?: ServerConfig[];
  budget: Budget;
  onUnknown: OnUnknown;
  /** What it runs instead of an agent's conversation: it then has neither instructions nor a model nor tools. */
  workflow?: Workflow;
}

/** `path` of an agent → name that it uses → `path` of the agent meant; and all of them by path. */
export interface Family {
  members: { [path: string]: FamilyMember };
  links: { [path: string]: { [name: string]: string } };
}

export type FamilyMember = Pick<
  LoadedAgent,
  "manifest" | "path" | "folder" | "scriptText" | "skills" | "notes"
>;

/** A file that an agent is made of. */
export interface OwnFile {
  part: "manifest" | "instructions" | "script";
  /** Absolute; within the program it begins with `embedded:`. */
  path: string;
  contentHash: string;
}

/** A manifest and where it came from. */
export interface LoadedAgent {
  manifest: AgentManifest;
  /** Absolute path of the file, or `embedded:<name>`. */
  path: string;
  /** Folder that manifest-relative paths start from. */
  folder: string;
  /** Text of the script of a `scripted` model, read at load time. */
  scriptText?: string;
  /** How that file is named in messages. Absent in an agent from a spec blob, and in one that another may start. */
  scriptFile?: string;
  /** The skills that the manifest names, in its order; absent: none. */
  skills?: Skill[];
  /** What the project's AGENTS.md says, where it is told to this agent. */
  notes?: string;
  /** What a user should know of its files, a sentence each. Absent in an agent from a spec blob. */
  notices?: string[];
  /** The files that it is made of, with a hash of each text, for trust. Absent in an agent that comes from a run's spec blob. */
  ownFiles?: OwnFile[];
  /** Where something stands in its manifest; of servers of `mcp.yaml` in that one. Absent in an agent from a spec blob. */
  placeOf?: PlaceOf;
  /** Every agent that it, or one of these, may start: by the path of the agent that names it and the name. Filled in when a run is made. */
  family?: Family;
  /** The project's `providers.yaml`, `mcp.yaml` and `SKILL.md`s, where the manifest takes something from them: that needs trust too. Absent in an agent from a spec blob. */
  projectFiles?: ProjectFile[];
}
