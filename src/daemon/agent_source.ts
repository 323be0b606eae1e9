/** Where a run's agent comes from: found for a new run, stored in the journal, or read anew for a dead one. */
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { ClientFacts, RunObserver } from "../base/operations.ts";
import { join } from "../base/posix_path.ts";
import type { Storage } from "../base/storage.ts";
import type { FamilyMember, LoadedAgent } from "../manifest/agent_manifest.ts";
import { findNotes } from "../manifest/agents_md.ts";
import { type Given, withParameters } from "../manifest/workflow/parameters.ts";
import { checkFamily } from "./check_family.ts";
import { familyOf } from "./family.ts";
import { EMBEDDED_AGENTS } from "../manifest/embedded.ts";
import { type AgentPlaces, findAgent, type FoundAgent } from "../manifest/find_agent.ts";
import { type KnownPlaces, listAgents } from "../manifest/known_agents.ts";
import {
  EMBEDDED,
  loadAgentFile,
  loadEmbeddedPath,
  type Nameable,
} from "../manifest/load_agent.ts";
import type { ConfigFile } from "../manifest/config_file.ts";
import { loadConfig } from "../manifest/load_config.ts";
import { loadProviders } from "../manifest/load_providers.ts";
import { loadServers } from "../manifest/load_servers.ts";
import type { ProjectSearch } from "../manifest/project_folder.ts";
import { findSkills } from "../manifest/skill_table.ts";
import { loadSpec } from "../manifest/spec.ts";
import {
  isFileTrusted,
  requireFileTrust,
  requireTrust,
  type TrustOptions,
  type TrustStore,
} from "../manifest/trust.ts";

/** A manifest that another one names by its path. */
async function loadBeside(
  path: string,
  from: LoadedAgent,
  places: AgentPlaces,
): Promise<LoadedAgent> {
  if (from.folder.startsWith(EMBEDDED)) {
    const inside = join(from.folder.slice(EMBEDDED.length), path);
    return await loadEmbeddedPath(`${EMBEDDED}${inside}`, places.embedded, places);
  }
  const { agent } = await findAgent(`./${path}`.replace(/^\.\/\//, "/"), {
    ...places,
    cwd: from.folder,
  });
  return agent;
}

/** The parameters of a run that its manifest still has. */
function stillKnown(agent: LoadedAgent, stored: LoadedAgent): Given {
  const names = agent.manifest.workflow?.parameters.map(({ name }) => name) ?? [];
  const given = Object.entries(stored.manifest.workflow?.values ?? {});
  return Object.fromEntries(given.filter(([name]) => names.includes(name)));
}

export interface AgentSourceDeps {
  storage: Storage;
  /** Folder of the user's configuration. */
  config: string;
  uid: number;
  trust: TrustStore;
}

/** How consent is had, if it is needed. */
export interface Consent {
  trust: boolean;
  /** Asks a person where there is one. */
  observer: Pick<RunObserver, "confirmTrust">;
}

export class AgentSource {
  readonly #deps: AgentSourceDeps;

  constructor(deps: AgentSourceDeps) {
    this.#deps = deps;
  }

  /** Finds what the user named. Throws NOT_FOUND, INVALID or UNTRUSTED (exit 2). */
  async find(reference: string, client: ClientFacts, consent: Consent): Promise<FoundAgent> {
    const nameable = await this.#nameable(client);
    const places: AgentPlaces = {
      ...this.#placesOf(client),
      embedded: EMBEDDED_AGENTS,
      ...nameable,
    };
    const found = await findAgent(reference, places);
    await this.#require(found, consent);
    const agent = await this.#withFamily(found, places, consent);
    return { ...found, agent: await this.#withNotes(agent, places, consent) };
  }

  /** What the user named and all that it may start, only read: nothing is asked, and nothing of it may run. `parameters`: those of a workflow, all of which have to be there. */
  async look(
    reference: string,
    client: Pick<ClientFacts, "cwd" | "env">,
    parameters: Given | undefined,
  ): Promise<LoadedAgent> {
    const nameable = await this.#nameable(client);
    const places = { ...this.#placesOf(client), embedded: EMBEDDED_AGENTS, ...nameable };
    const { agent, scope } = await findAgent(reference, places);
    const given = parameters === undefined ? agent : withParameters(agent, parameters);
    return await this.#withFamily({ agent: given, scope }, places, undefined);
  }

  /** The agent with all that it may start, each with the consent that it needs. */
  async #withFamily(
    { agent, scope }: Pick<FoundAgent, "agent" | "scope">,
    places: AgentPlaces,
    consent: Consent | undefined,
  ): Promise<LoadedAgent> {
    const notices = [...agent.notices ?? []];
    const scopes = new Map([[agent.path, scope]]);
    const family = await familyOf(agent, async (child, from) => {
      // A manifest that was consented to by its path may point to others; one that was found needs consent for each.
      const found = child.manifest === undefined ? await findAgent(child.name, places) : {
        agent: await loadBeside(child.manifest, from, places),
        scope: scopes.get(from.path) ?? scope,
        notices: [],
      };
      if (!scopes.has(found.agent.path)) scopes.set(found.agent.path, found.scope);
      if (consent !== undefined) await this.#require(found, consent);
      notices.push(...found.agent.notices ?? []);
      return found.agent;
    });
    const whole = family === undefined
      ? agent
      : { ...agent, family, notices: [...new Set(notices)] };
    checkFamily(whole);
    return whole;
  }

  /** The agent as a run's spec blob has it. */
  stored(spec: Json): LoadedAgent {
    return loadSpec(spec);
  }

  /** The manifest as it is now, for a dead run. One that was trusted by name and has changed since needs trust anew. */
  async reload(
    stored: LoadedAgent,
    { client, consent }: { client: Pick<ClientFacts, "cwd" | "env">; consent: Consent },
  ): Promise<LoadedAgent> {
    const agent = await this.present(stored, client);
    const scope = await this.#hasChanged(agent) ? "project" : "path";
    await this.#require({ agent, scope, notices: [] }, consent);
    const nameable = await this.#nameable(client);
    const places = { ...this.#placesOf(client), embedded: EMBEDDED_AGENTS, ...nameable };
    const whole = await this.#withFamily({ agent, scope }, places, consent);
    return await this.#withNotes(whole, places, consent);
  }

  /** The manifest as it is now with the parameters of the run, only read. Throws INVALID or NOT_FOUND (exit 2). */
  async present(
    stored: LoadedAgent,
    client: Pick<ClientFacts, "cwd" | "env">,
  ): Promise<LoadedAgent> {
    try {
      const agent = await this.#load(stored.path, await this.#nameable(client));
      return withParameters(agent, stillKnown(agent, stored));
    } catch (thrown) {
      const error = toSysError(thrown);
      throw new SysError(error.code, error.message, {
        device: error.device,
        exitCode: EXIT_USAGE,
        hint: "--stored goes on with the manifest as it was",
      });
    }
  }

  /** The files that a resume of this agent would ask consent for: its manifest, trusted by name once and another text now, and files of the project. */
  async untrustedFiles(agent: LoadedAgent): Promise<string[]> {
    const files = await Promise.all((agent.projectFiles ?? []).map(async (file) => {
      return await this.#deps.trust.check(file) === "trusted" ? [] : [file.path];
    }));
    return [...await this.#hasChanged(agent) ? [agent.path] : [], ...files.flat()];
  }

  async #hasChanged(agent: LoadedAgent): Promise<boolean> {
    return await this.#deps.trust.check(agent) === "changed";
  }

  /** `config.yaml` of the user and of the project that a client stands in. Throws INVALID (exit 2). */
  async settings(client: Pick<ClientFacts, "cwd" | "env">): Promise<ConfigFile> {
    return await loadConfig(this.#placesOf(client));
  }

  /** What the files of the user and the project let a manifest name, and what goes for one that doesn't say. */
  async #nameable(client: Pick<ClientFacts, "cwd" | "env">): Promise<Nameable> {
    const places = this.#placesOf(client);
    const { onUnknown } = await loadConfig(places);
    return {
      providers: await loadProviders(places),
      servers: await loadServers(places),
      skills: await findSkills(places),
      agents: await this.#agentNames(places),
      onUnknown,
    };
  }

  async #agentNames(places: Omit<KnownPlaces, "embedded">): Promise<string[]> {
    const known = await listAgents({ ...places, embedded: EMBEDDED_AGENTS });
    return known.map(({ name }) => name);
  }

  #placesOf({ cwd, env }: Pick<ClientFacts, "cwd" | "env">) {
    const { storage, config, uid } = this.#deps;
    return { storage, cwd, home: env["HOME"], uid, config };
  }

  async #load(path: string, nameable: Nameable): Promise<LoadedAgent> {
    return path.startsWith(EMBEDDED)
      ? await loadEmbeddedPath(path, EMBEDDED_AGENTS, nameable)
      : await loadAgentFile(this.#deps.storage, path, nameable);
  }

  /** The agent and its family with the project's notes, where they are wanted and trusted; an agent can work without them. */
  async #withNotes(
    agent: LoadedAgent,
    places: ProjectSearch,
    consent: Consent,
  ): Promise<LoadedAgent> {
    const members = Object.values(agent.family?.members ?? {});
    if (![agent, ...members].some(takesNotes)) return agent;
    const found = await findNotes(places);
    if (found === undefined) return agent;
    const notices = agent.notices ?? [];
    if ("notice" in found) return { ...agent, notices: [...notices, found.notice] };
    if (!await isFileTrusted(found.projectFile, this.#trustOptions(consent))) {
      const { path } = found.projectFile;
      const notice =
        `No agent is told of "${path}", which is not trusted as it is; read it, then run with --trust, or put "agents_md: false" into the manifest`;
      return { ...agent, notices: [...notices, notice] };
    }
    const told = <A extends FamilyMember>(one: A): A =>
      takesNotes(one) ? { ...one, notes: found.text } : one;
    const family = agent.family === undefined ? {} : {
      family: {
        ...agent.family,
        members: Object.fromEntries(
          Object.entries(agent.family.members).map(([path, member]) => [path, told(member)]),
        ),
      },
    };
    return { ...told(agent), ...family, notices: [...notices, ...found.notices] };
  }

  #trustOptions({ observer, trust }: Consent): TrustOptions {
    const ask = observer.confirmTrust;
    return {
      store: this.#deps.trust,
      trust,
      ...(ask !== undefined ? { ask: (question) => ask.call(observer, question) } : {}),
    };
  }

  async #require(found: FoundAgent, consent: Consent): Promise<void> {
    const options = this.#trustOptions(consent);
    await requireTrust(found, options);
    for (const file of found.agent.projectFiles ?? []) await requireFileTrust(file, options);
  }
}

function takesNotes({ manifest }: FamilyMember): boolean {
  return manifest.agentsMd !== false;
}
