/**
 * A look at every agent and every configured server, without starting anything: which manifests are whole, which servers they have, and whether each could be started.
 *
 * Everything that is wrong is told at once. A manifest with mistakes is still looked into as far as its servers can be read, so that one mistake doesn't hide the next.
 */
import { join, resolve } from "node:path";
import { SysError } from "../base/errors.ts";
import { shownFrom } from "../base/paths.ts";
import type { LoadedAgent, ServerConfig } from "./agent_manifest.ts";
import { checkServer } from "./check_server.ts";
import { type AgentPlaces, findAgent } from "./find_agent.ts";
import { type AgentScope, type KnownAgent, knownAgents } from "./known_agents.ts";
import { loadAgentFile } from "./load_agent.ts";
import { MANIFEST_FILE } from "./names.ts";
import { type Problem, problemsOf } from "./problems.ts";
import { readableServers } from "./readable_servers.ts";
import { NO_SERVERS, type ServerTable } from "./server_table.ts";
import { MANIFEST_BYTES_MAX, readSourceText } from "./source_text.ts";

/** Surroundings of a check. */
export interface CheckPlaces extends AgentPlaces {
  /** The client's environment: its variables and its PATH. */
  env: { [name: string]: string };
}

/** Something that is wrong. */
export interface CheckFault {
  /** A run would fail for a fault, goes on without what a warning is about, and doesn't mind a note. */
  severity: "fault" | "warning" | "note";
  message: string;
  /** What to do, a sentence. */
  hint?: string;
  agent?: string;
  server?: string;
  /** As shown to the user. */
  file?: string;
  /** From 1. */
  line?: number;
  /** From 1. */
  column?: number;
}

/** An agent that was looked at. */
export interface CheckedAgent {
  name: string;
  scope: AgentScope;
  /** As shown to the user. */
  path: string;
  /** Names of its servers; empty: `mcp: {}`; absent: no `mcp` key. */
  servers?: string[];
  /** Absent where its manifest has mistakes. */
  loaded?: LoadedAgent;
}

/** A server of an agent, or of `mcp.yaml`: that one has no `agent`. */
export interface CheckedServer {
  name: string;
  agent?: string;
  transport: ServerConfig["transport"];
  required: boolean;
  /** As it is written. */
  command?: string;
  /** Where its program was found. */
  program?: string;
  /** As it is written, without its parameters: they may hold a key. */
  url?: string;
  /** Set where an agent takes it from `mcp.yaml`. */
  isShared?: true;
  /** Agents that take this server of `mcp.yaml`. */
  usedBy?: string[];
}

/** What a check found. Agents without faults come first: trouble stands at the end. */
export interface McpCheck {
  agents: CheckedAgent[];
  servers: CheckedServer[];
  faults: CheckFault[];
  /** What a user should know of the search, a sentence each. */
  notices: string[];
}

/**
 * Looks at the agents and servers that are named, or at all of the project, the user and the working folder, those inside the program aside.
 *
 * `references`: agents by name or path, and servers of `mcp.yaml` by name. Throws NOT_FOUND (exit 2) for one that isn't there.
 */
export async function checkMcp(
  places: CheckPlaces,
  references: readonly string[] = [],
): Promise<McpCheck> {
  const check = new Check(places);
  return references.length === 0 ? await check.all() : await check.named(references);
}

/** An agent, what of its servers can be read, and what is wrong with its manifest. */
interface Looked {
  agent: CheckedAgent;
  configs: ServerConfig[];
  /** Where its relative paths start from. */
  folder: string;
  faults: CheckFault[];
}

class Check {
  readonly #places: CheckPlaces;
  readonly #table: ServerTable;

  constructor(places: CheckPlaces) {
    this.#places = places;
    this.#table = places.servers ?? NO_SERVERS;
  }

  async all(): Promise<McpCheck> {
    const { agents, notices } = await knownAgents(this.#places);
    const looked: Looked[] = [];
    for (const known of agents) {
      if (known.scope !== "embedded") looked.push(await this.#lookAtKnown(known));
    }
    return await this.#report(looked, { shared: this.#table.all.map(({ name }) => name), notices });
  }

  async named(references: readonly string[]): Promise<McpCheck> {
    const looked: Looked[] = [];
    const shared: string[] = [];
    const notices: string[] = [];
    for (const reference of new Set(references)) {
      try {
        const found = await findAgent(reference, this.#places);
        const { manifest, path } = found.agent;
        const shown = found.scope === "embedded" ? path : shownFrom(this.#places.cwd, path);
        looked.push(whole({ name: manifest.name, scope: found.scope, path: shown }, found.agent));
        notices.push(...found.notices);
      } catch (thrown) {
        if (!(thrown instanceof SysError)) throw thrown;
        if (problemsOf(thrown).length > 0) looked.push(await this.#lookAtFaulty(reference, thrown));
        else if (thrown.code === "NOT_FOUND" && this.#table.get(reference) !== undefined) {
          shared.push(reference);
        } else throw this.#withServers(thrown);
      }
    }
    return await this.#report(looked, { shared, notices: [...new Set(notices)] });
  }

  async #lookAtKnown({ name, scope, path }: KnownAgent): Promise<Looked> {
    const { storage, cwd, providers, servers, skills, agents } = this.#places;
    const agent: CheckedAgent = { name, scope, path: shownFrom(cwd, path) };
    try {
      return whole(
        agent,
        await loadAgentFile(storage, path, {
          shown: agent.path,
          ...{ providers, servers, skills, agents },
        }),
      );
    } catch (thrown) {
      if (!(thrown instanceof SysError)) throw thrown;
      return await this.#faulty(agent, path, thrown);
    }
  }

  /** An agent with mistakes that was named. */
  async #lookAtFaulty(reference: string, error: SysError): Promise<Looked> {
    const known = (await knownAgents(this.#places)).agents.find(({ name }) => name === reference);
    const given = resolve(this.#places.cwd, reference);
    const facts = await this.#places.storage.stat(given).catch(() => undefined);
    const path = known?.path ?? (facts?.kind === "file" ? given : join(given, MANIFEST_FILE));
    const shown = shownFrom(this.#places.cwd, path);
    return await this.#faulty(
      { name: reference, scope: known?.scope ?? "path", path: shown },
      path,
      error,
    );
  }

  async #faulty(agent: CheckedAgent, path: string, error: SysError): Promise<Looked> {
    const source = await readSourceText(this.#places.storage, path, MANIFEST_BYTES_MAX);
    const found = source.kind === "text" ? readableServers(source.text, this.#table) : undefined;
    const problems = problemsOf(error);
    const { message, hint } = error;
    return {
      agent: { ...agent, ...found === undefined ? {} : { servers: found.names } },
      configs: found?.configs ?? [],
      folder: resolve(path, ".."),
      faults: problems.length > 0
        ? problems.map((problem) => ({ ...faultOf(problem), agent: agent.name }))
        : [{
          severity: "fault",
          agent: agent.name,
          message,
          ...hint === undefined ? {} : { hint },
        }],
    };
  }

  async #report(
    looked: readonly Looked[],
    { shared, notices }: { shared: readonly string[]; notices: string[] },
  ): Promise<McpCheck> {
    const faultsOf = new Map<CheckedAgent, CheckFault[]>();
    const servers: CheckedServer[] = [];
    for (const { agent, configs, folder, faults } of looked) {
      const found = [...faults];
      for (const config of configs) {
        servers.push(await this.#checkServer(config, { folder, agent: agent.name, faults: found }));
      }
      faultsOf.set(agent, found);
    }
    const ownFaults = this.#table.problems.map(faultOf);
    for (const name of shared) {
      const config = this.#table.get(name)?.config;
      if (config === undefined) continue;
      const usedBy = looked.filter((each) => each.configs.includes(config));
      // What is wrong with it is told of those who use it.
      const faults = usedBy.length > 0 ? [] : ownFaults;
      const server = await this.#checkServer(config, { folder: this.#places.cwd, faults });
      servers.push({ ...server, usedBy: usedBy.map(({ agent }) => agent.name) });
    }
    const rank = (agent: CheckedAgent) => (faultsOf.get(agent)?.length ?? 0) > 0 ? 1 : 0;
    const agents = looked.map(({ agent }) => agent).toSorted((a, b) => rank(a) - rank(b));
    const faults = [...agents.flatMap((agent) => faultsOf.get(agent) ?? []), ...ownFaults];
    return { agents, servers: inOrderOf(agents, servers), faults: onceEach(faults), notices };
  }

  /** Looks at one server; what is wrong goes to `faults`. */
  async #checkServer(
    config: ServerConfig,
    { folder, agent, faults }: { folder: string; agent?: string; faults: CheckFault[] },
  ): Promise<CheckedServer> {
    const { storage, env, cwd } = this.#places;
    const { name, required, transport } = config;
    const facts = { storage, clientEnv: env, manifestFolder: folder, runFolder: cwd };
    const check = await checkServer(config, facts);
    const owner = { ...agent === undefined ? {} : { agent } };
    const severity = required ? "fault" : "warning";
    faults.push(
      ...check.faults.map((fault) => ({ severity, ...owner, server: name, ...fault } as const)),
    );
    return {
      name,
      ...owner,
      ...agent === undefined || config.file === undefined ? {} : { isShared: true },
      transport,
      required,
      ...config.transport === "stdio"
        ? { command: config.command }
        : { url: config.url.replace(/[?#][^]*$/, "") },
      ...check.program === undefined ? {} : { program: check.program },
    };
  }

  #withServers(error: SysError): SysError {
    const names = this.#table.all.map(({ name }) => name);
    if (error.code !== "NOT_FOUND" || names.length === 0) return error;
    return new SysError(error.code, `${error.message}. Servers of mcp.yaml: ${names.join(", ")}`, {
      hint: error.hint,
      exitCode: error.exitCode,
    });
  }
}

function whole(agent: CheckedAgent, loaded: LoadedAgent): Looked {
  const { servers } = loaded.manifest;
  return {
    agent: {
      ...agent,
      ...servers === undefined ? {} : { servers: servers.map(nameOf) },
      loaded,
    },
    configs: servers ?? [],
    folder: loaded.folder,
    faults: (loaded.notices ?? []).map((message) => ({
      severity: "note",
      agent: agent.name,
      message,
    })),
  };
}

function nameOf({ name }: ServerConfig): string {
  return name;
}

function faultOf(problem: Problem): CheckFault {
  return { severity: "fault", ...problem };
}

/** Servers in the order of their agents, those of `mcp.yaml` last. */
function inOrderOf(
  agents: readonly CheckedAgent[],
  servers: readonly CheckedServer[],
): CheckedServer[] {
  const rank = ({ agent }: CheckedServer) =>
    agent === undefined ? agents.length : agents.findIndex(({ name }) => name === agent);
  return servers.toSorted((a, b) => rank(a) - rank(b));
}

/** What is wrong with a file that several agents use is told once, and what is wrong with one thing for two reasons. */
export function onceEach(faults: readonly CheckFault[]): CheckFault[] {
  const told = new Set<string>();
  return faults.filter(({ file, line, column, agent, server, message }) => {
    const place = file === undefined ? [agent, server] : [file, line, column];
    const key = JSON.stringify([place, message]);
    if (told.has(key)) return false;
    told.add(key);
    return true;
  });
}
