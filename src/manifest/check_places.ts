/** Where a check looks, with the files of the user and the project read: what is wrong in them is kept, so that the rest can be looked at too. */
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import type { CheckFault, CheckPlaces } from "./check.ts";
import { EMBEDDED_AGENTS } from "./embedded.ts";
import { loadProviders } from "./load_providers.ts";
import { loadServers } from "./load_servers.ts";
import { problemsOf } from "./problems.ts";
import { type ProviderEntry, ProviderTable } from "./provider_table.ts";

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

/** Reads `providers.yaml` and `mcp.yaml`. `faults` are the mistakes of the former; those of the latter are in its table. */
export async function checkPlaces(
  { storage, cwd, config, uid, env }: CheckStart,
): Promise<{ places: CheckPlaces; faults: CheckFault[] }> {
  const search = { storage, cwd, config, uid, home: env["HOME"] };
  const { providers, faults } = await readProviders(search);
  const servers = await loadServers(search);
  return { places: { ...search, env, embedded: EMBEDDED_AGENTS, providers, servers }, faults };
}

async function readProviders(
  search: Parameters<typeof loadProviders>[0],
): Promise<{ providers: ProviderTable; faults: CheckFault[] }> {
  try {
    return { providers: await loadProviders(search), faults: [] };
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    const problems = problemsOf(thrown);
    if (problems.length === 0) throw thrown;
    const faults = problems.map((problem) => ({ severity: "fault", ...problem } as const));
    return { providers: new UnreadableProviders(), faults };
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
