/** Where a run's agent comes from: found for a new run, stored in the journal, or read anew for a dead one. */
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { ClientFacts, RunObserver } from "../base/operations.ts";
import { shownFrom } from "../base/paths.ts";
import { join, resolve } from "../base/posix_path.ts";
import type { Storage } from "../base/storage.ts";
import type { FamilyMember, LoadedAgent } from "../manifest/agent_manifest.ts";
import { findNotes, type ProjectNotes } from "../manifest/agents_md.ts";
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
  agreeTo,
  coveredBy,
  type CoveredFile,
  coveredFile,
  requireTrust,
  type TrustOptions,
  type TrustStore,
  untrustedError,
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
  // As the user would name it from where they stand.
  const shown = shownFrom(places.cwd, resolve(from.folder, path));
  const { agent } = await findAgent(shown.startsWith("/") ? shown : `./${shown}`, places);
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
  /** Told what the command has consented to, a sentence. */
  notice(message: string): void;
}

/** How consent to files of a project is had. */
export function trustOptions(
  store: TrustStore,
  { observer, trust, notice }: Consent,
): TrustOptions {
  const ask = observer.confirmTrust;
  return {
    store,
    trust,
    notice,
    ...(ask === undefined ? {} : { ask: (question) => ask.call(observer, question) }),
  };
}

/** An agent with all that it may start, and the files of the project that this takes. */
interface Gathered {
  agent: LoadedAgent;
  covered: CoveredFile[];
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
    const gathered = await this.#withFamily(found, places);
    return { ...found, agent: await this.#withConsent(gathered, places, consent) };
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
    return (await this.#withFamily({ agent: given, scope }, places)).agent;
  }

  /** The agent with all that it may start, only read. */
  async #withFamily(
    { agent, scope }: Pick<FoundAgent, "agent" | "scope">,
    places: AgentPlaces,
  ): Promise<Gathered> {
    const notices = [...agent.notices ?? []];
    const covered = coveredBy(agent, scope);
    const scopes = new Map([[agent.path, scope]]);
    const family = await familyOf(agent, async (child, from) => {
      // A manifest that was consented to by its path may point to others; one that was found needs consent for each.
      const found = child.manifest === undefined ? await findAgent(child.name, places) : {
        agent: await loadBeside(child.manifest, from, places),
        scope: scopes.get(from.path) ?? scope,
        notices: [],
      };
      if (!scopes.has(found.agent.path)) scopes.set(found.agent.path, found.scope);
      covered.push(...coveredBy(found.agent, found.scope));
      notices.push(...found.agent.notices ?? []);
      return found.agent;
    });
    const whole = family === undefined
      ? agent
      : { ...agent, family, notices: [...new Set(notices)] };
    checkFamily(whole);
    return { agent: whole, covered };
  }

  /** The agent as it may run, once there is consent to all that it takes. An agent can work without the project's notes, so they are left out where there is none. */
  async #withConsent(
    { agent, covered }: Gathered,
    places: ProjectSearch,
    consent: Consent,
  ): Promise<LoadedAgent> {
    const notes = await notesFor(agent, places);
    const file = notes !== undefined && "projectFile" in notes
      ? coveredFile(notes.projectFile)
      : undefined;
    const subject = subjectOf(agent);
    const options = trustOptions(this.#deps.trust, consent);
    const all = [...covered, ...file === undefined ? [] : [file]];
    const left = await agreeTo(subject, all, options);
    if (left.some(({ path }) => path !== file?.path)) throw untrustedError(subject, left);
    return withNotes(agent, notes, left.length === 0);
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
    const present = await this.present(stored, client);
    const gathered = await orStored(() => this.#gatherAnew(present, client));
    return await this.#withConsent(gathered, this.#placesOf(client), consent);
  }

  /** What a resume of this agent takes. A manifest that was trusted by name once needs it anew where anything of it has changed. */
  async #gatherAnew(
    agent: LoadedAgent,
    client: Pick<ClientFacts, "cwd" | "env">,
  ): Promise<Gathered> {
    const scope = await this.#deps.trust.isKnown(agent.path) ? "project" : "path";
    const nameable = await this.#nameable(client);
    const places = { ...this.#placesOf(client), embedded: EMBEDDED_AGENTS, ...nameable };
    return await this.#withFamily({ agent, scope }, places);
  }

  /** The manifest as it is now with the parameters of the run, only read. Throws INVALID or NOT_FOUND (exit 2). */
  async present(
    stored: LoadedAgent,
    client: Pick<ClientFacts, "cwd" | "env">,
  ): Promise<LoadedAgent> {
    return await orStored(async () => {
      const agent = await this.#load(stored.path, await this.#nameable(client));
      return withParameters(agent, stillKnown(agent, stored));
    });
  }

  /** Throws UNTRUSTED (exit 2) where a resume of this agent would ask for consent. */
  async requireConsent(
    agent: LoadedAgent,
    client: Pick<ClientFacts, "cwd" | "env">,
  ): Promise<void> {
    const { covered } = await orStored(() => this.#gatherAnew(agent, client));
    await requireTrust(subjectOf(agent), covered, { store: this.#deps.trust, trust: false });
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
}

/** What the files as they are now give; what is wrong with them is told with the way around it. */
async function orStored<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (thrown) {
    const error = toSysError(thrown);
    throw new SysError(error.code, error.message, {
      device: error.device,
      exitCode: EXIT_USAGE,
      hint: "--stored goes on with the manifest as it was",
    });
  }
}

function subjectOf({ manifest }: LoadedAgent): string {
  return `${manifest.workflow === undefined ? "Agent" : "Workflow"} "${manifest.name}"`;
}

function takesNotes({ manifest }: FamilyMember): boolean {
  return manifest.agentsMd !== false;
}

type Notes = ProjectNotes | { notice: string } | undefined;

/** The project's notes, where any of the family wants them. */
async function notesFor(agent: LoadedAgent, places: ProjectSearch): Promise<Notes> {
  const members = Object.values(agent.family?.members ?? {});
  return [agent, ...members].some(takesNotes) ? await findNotes(places) : undefined;
}

/** The agent and its family with the notes, or with the notice why not. */
function withNotes(agent: LoadedAgent, found: Notes, isTrusted: boolean): LoadedAgent {
  if (found === undefined) return agent;
  const notices = agent.notices ?? [];
  if ("notice" in found) return { ...agent, notices: [...notices, found.notice] };
  if (!isTrusted) {
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
