/** Where a check looks, with the files of the user and the project read: what is wrong in them is kept, so that the rest can be looked at too. */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import type { CheckFault, CheckPlaces } from "./check.ts";
import { EMBEDDED_AGENTS } from "./embedded.ts";
import { type KnownPlaces, listAgents } from "./known_agents.ts";
import { loadConfig } from "./load_config.ts";
import { loadProviders } from "./load_providers.ts";
import { loadServers } from "./load_servers.ts";
import { problemsOf } from "./problems.ts";
import { type ProviderEntry, ProviderTable } from "./provider_table.ts";
import { findSkills } from "./skill_table.ts";

/** What is known of the surroundings beforehand. */
export interface CheckStart {
  storage: Storage;
  /** Absolute. */
  cwd: string;
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
  uid: number;
  /** The client's environment. */
  env: { [name: string]: string };
}

/** What was read, and the mistakes of two of the files; those of `mcp.yaml` are in its table. */
export interface CheckGround {
  places: CheckPlaces;
  configFaults: CheckFault[];
  providerFaults: CheckFault[];
}

/** Reads `config.yaml`, `providers.yaml` and `mcp.yaml`, and looks which skills there are. */
export async function checkPlaces(
  { storage, cwd, config, uid, env }: CheckStart,
): Promise<CheckGround> {
  const search = { storage, cwd, config, uid, home: env["HOME"] };
  const settings = await readWhole(() => loadConfig(search));
  const table = await readWhole(() => loadProviders(search));
  const providers = table.value ?? new UnreadableProviders();
  const servers = await loadServers(search);
  return {
    places: {
      ...search,
      env,
      embedded: EMBEDDED_AGENTS,
      providers,
      servers,
      skills: await findSkills(search),
      agents: await agentNames(search),
    },
    configFaults: settings.faults,
    providerFaults: table.faults,
  };
}

async function agentNames(search: Omit<KnownPlaces, "embedded">): Promise<string[]> {
  const known = await listAgents({ ...search, embedded: EMBEDDED_AGENTS });
  return known.map(({ name }) => name);
}

/** What a file says, or its mistakes. */
async function readWhole<T>(
  read: () => Promise<T>,
): Promise<{ value?: T; faults: CheckFault[] }> {
  try {
    return { value: await read(), faults: [] };
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    const problems = problemsOf(thrown);
    if (problems.length === 0) throw thrown;
    return { faults: problems.map((problem) => ({ severity: "fault", ...problem })) };
  }
}

/** In place of a file with mistakes: any name may be in it, so none is a mistake of who names it. */
class UnreadableProviders extends ProviderTable {
  constructor() {
    super([], { name: "default" });
  }

  override get(name: string): ProviderEntry {
    return super.get(name) ?? { name, kind: "openai", defaultModel: name };
  }

  override faultOf(): undefined {}
}
