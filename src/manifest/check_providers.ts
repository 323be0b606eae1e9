/** Whether the model providers that agents name could be used: their keys and variables are set. Nobody is asked, and no key is told. */
import { SysError } from "../base/errors.ts";
import type { LoadedAgent, ModelConfig, ModelPlace } from "./agent_manifest.ts";
import type { CheckFault } from "./check.ts";
import { builtIn, type ProviderEntry, type ProviderTable } from "./provider_table.ts";
import { resolveModel } from "./resolve_model.ts";

/** A provider that an agent names, or that `providers.yaml` has. */
export interface CheckedProvider {
  name: string;
  kind: string;
  /** Variable of its key, where it has one. */
  keyVariable?: string;
  keyIsSet?: boolean;
  /** The same in words. */
  state: string;
}

/** What a check of providers found. */
export interface ProviderCheck {
  providers: CheckedProvider[];
  faults: CheckFault[];
}

/** Looks at the providers of the table's files and at those that the agents use. */
export function checkProviders(
  table: ProviderTable,
  agents: readonly { name: string; loaded: LoadedAgent }[],
  env: { [name: string]: string },
): ProviderCheck {
  const providers = new Map<string, CheckedProvider>();
  for (const name of table.names) {
    const entry = table.get(name);
    if (entry === undefined || entry === builtIn(name)) continue;
    providers.set(name, stateOf(entry, env));
  }
  const faults: CheckFault[] = [];
  for (const { name: agent, loaded } of agents) {
    if (loaded.manifest.workflow !== undefined) continue;
    for (const place of placesOf(loaded.manifest.models)) {
      const { provider: name, kind = name } = place;
      const entry = { kind, ...place, name };
      if (!providers.has(name)) providers.set(name, stateOf(entry, env));
      const fault = faultOf(place, env);
      if (fault !== undefined) faults.push({ severity: "fault", agent, ...fault });
    }
  }
  return { providers: [...providers.values()], faults };
}

/** The preferred model's place, and the fallback's. */
function placesOf({ fallback, ...models }: ModelConfig): (ModelPlace & { preferred: string })[] {
  if (fallback === undefined) return [models];
  const { model: preferred, ...place } = fallback;
  return [models, { ...place, preferred }];
}

function stateOf(
  { name, kind, apiKeyEnv, keyOptional }: Pick<ModelPlace, "apiKeyEnv" | "keyOptional"> & {
    name: string;
    kind: ProviderEntry["kind"] | string;
  },
  env: { [name: string]: string },
): CheckedProvider {
  if (apiKeyEnv === undefined) return { name, kind, state: "needs no key" };
  const keyIsSet = (env[apiKeyEnv] ?? "") !== "";
  const unset = keyOptional === true ? "is not set, and need not be" : "is not set";
  const state = `${apiKeyEnv} ${keyIsSet ? "is set" : unset}`;
  return { name, kind, keyVariable: apiKeyEnv, keyIsSet, state };
}

function faultOf(
  place: ModelPlace & { preferred: string },
  env: { [name: string]: string },
): { message: string; hint?: string } | undefined {
  try {
    resolveModel(place, env);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    const { message, hint } = thrown;
    return { message, ...hint === undefined ? {} : { hint } };
  }
}
