/** `models` of a manifest together with the providers that it names: where each model is, and what is known of it. */
import type { ModelConfig, ModelPlace } from "./agent_manifest.ts";
import { MODEL_TIMEOUT_IN_ALL_MS, MODEL_TIMEOUT_MS, type ModelsFile } from "./manifest_schema.ts";
import type { ProjectFile } from "./project_folder.ts";
import type { ProviderEntry, ProviderTable } from "./provider_table.ts";

/** A model's configuration, and the project's file where it has a part in it. */
export interface ResolvedModels {
  models: ModelConfig;
  projectFile?: ProjectFile;
}

/** For a file without mistakes: its providers are known. */
export function toModels(file: ModelsFile, providers: ProviderTable): ResolvedModels {
  const provider = file.provider ?? providers.default?.name ?? "";
  const entry = entryOf(providers, provider);
  const timeoutMs = file.timeout ?? Math.min(MODEL_TIMEOUT_MS, file.max_timeout ?? Infinity);
  const fallback = fallbackOf(file, { entry, providers });
  const models: ModelConfig = {
    ...placeOf(entry, file),
    preferred: file.preferred ?? entry.defaultModel ?? provider,
    ...file.script === undefined ? {} : { script: file.script },
    ...fallback === undefined ? {} : { fallback: fallback.place },
    timeoutMs,
    maxTimeoutMs: file.max_timeout ?? Math.max(MODEL_TIMEOUT_IN_ALL_MS, timeoutMs),
  };
  const fromDefault = file.provider === undefined ? providers.default?.projectFile : undefined;
  const projectFile = fromDefault ?? entry.projectFile ?? fallback?.entry.projectFile;
  return projectFile === undefined ? { models } : { models, projectFile };
}

function fallbackOf(
  file: ModelsFile,
  { entry, providers }: { entry: ProviderEntry; providers: ProviderTable },
) {
  const { fallback, fallback_provider: name } = file;
  if (fallback === undefined && name === undefined) return undefined;
  const isSame = name === undefined || name === entry.name;
  const other = isSame ? entry : entryOf(providers, name);
  const place = isSame ? placeOf(entry, file) : placeOf(other, {});
  return {
    entry: other,
    place: { ...place, model: fallback ?? other.defaultModel ?? other.name },
  };
}

function entryOf(providers: ProviderTable, name: string): ProviderEntry {
  const entry = providers.get(name);
  if (entry === undefined) throw new Error(`Provider "${name}" was not checked`);
  return entry;
}

/** The entry, with what the manifest says before it. An entry's key and headers are for its own address alone: to another one goes only a key that is named. */
function placeOf(
  entry: ProviderEntry,
  given: Pick<ModelsFile, "base_url" | "api_key_env">,
): ModelPlace {
  const { name, kind, price, contextWindow } = entry;
  const isOwnAddress = given.base_url === undefined;
  const baseUrl = given.base_url ?? entry.baseUrl;
  const apiKeyEnv = given.api_key_env ?? (isOwnAddress ? entry.apiKeyEnv : undefined);
  const keyOptional = given.api_key_env === undefined && isOwnAddress && entry.keyOptional === true;
  const headers = isOwnAddress ? entry.headers : undefined;
  return {
    provider: name,
    ...kind === name ? {} : { kind },
    ...baseUrl === undefined ? {} : { baseUrl },
    ...apiKeyEnv === undefined ? {} : { apiKeyEnv },
    ...keyOptional ? { keyOptional } : {},
    ...headers === undefined ? {} : { headers },
    ...price === undefined ? {} : { price },
    ...contextWindow === undefined ? {} : { contextWindow },
  };
}
