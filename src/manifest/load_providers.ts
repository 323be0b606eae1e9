/**
 * `providers.yaml` of the user and of the project, as one table.
 *
 * The project's file is read without asking; only where a manifest makes use of it, it needs trust (`trust.ts`): it decides where a key is sent.
 */
import { join } from "node:path";
import { sha256Hex } from "../base/json.ts";
import { shownFrom } from "../base/paths.ts";
import { type ParsedProviders, parseProviders } from "./parse_providers.ts";
import { Problems } from "./problems.ts";
import { findProjectFolder, type ProjectFile, type ProjectSearch } from "./project_folder.ts";
import { type ProviderEntry, ProviderTable } from "./provider_table.ts";
import { MANIFEST_BYTES_MAX, readSourceText } from "./source_text.ts";

export const PROVIDERS_FILE = "providers.yaml";

/** Where the files may be. */
export interface ProviderPlaces extends ProjectSearch {
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
}

/** Reads both files. Throws INVALID (exit 2) with all mistakes of both. */
export async function loadProviders(places: ProviderPlaces): Promise<ProviderTable> {
  const problems = new Problems();
  const user = await read(places, join(places.config, PROVIDERS_FILE), { problems });
  const folder = await findProjectFolder(places);
  const project = folder === undefined || folder.refused !== undefined
    ? undefined
    : await read(places, join(folder.path, PROVIDERS_FILE), {
      problems,
      alsoKnown: user?.entries ?? [],
    });
  if (problems.count > 0) throw problems.toError();
  const userEntries = user?.entries ?? [];
  if (project === undefined) {
    return new ProviderTable(
      userEntries,
      user?.default === undefined ? undefined : { name: user.default },
    );
  }
  const projectFile: ProjectFile = {
    name: PROVIDERS_FILE,
    path: project.path,
    contentHash: sha256Hex(project.text),
    effects: project.entries.map(effectOf),
  };
  const marked = project.entries.map((entry) => ({ ...entry, projectFile }));
  const theDefault = project.default === undefined
    ? user?.default === undefined ? undefined : { name: user.default }
    : { name: project.default, projectFile };
  return new ProviderTable([...userEntries, ...marked], theDefault);
}

async function read(
  { storage, cwd }: ProviderPlaces,
  path: string,
  { problems, alsoKnown = [] }: { problems: Problems; alsoKnown?: readonly ProviderEntry[] },
): Promise<(ParsedProviders & { path: string; text: string }) | undefined> {
  const shown = shownFrom(cwd, path);
  const source = await readSourceText(storage, path, MANIFEST_BYTES_MAX);
  if (source.kind === "absent") return undefined;
  if (source.kind === "unusable") {
    problems.add(shown, source.position, source.message);
    return undefined;
  }
  const parsed = parseProviders(source.text, { file: shown, alsoKnown }, problems);
  return parsed === undefined ? undefined : { ...parsed, path, text: source.text };
}

/** Where an entry sends what. */
function effectOf({ name, kind, baseUrl, apiKeyEnv }: ProviderEntry): string {
  const key = apiKeyEnv === undefined ? "no key" : `the key in ${apiKeyEnv}`;
  return `${name}: sends ${key} to ${baseUrl ?? `the usual address of ${kind}`}`;
}
