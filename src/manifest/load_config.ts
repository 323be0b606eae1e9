/** `config.yaml` of the user and of the project as one: the project's keys over the user's, as far as a project may set them (`config_file.ts`). */
import { join } from "node:path";
import { shownFrom } from "../base/paths.ts";
import type { Storage } from "../base/storage.ts";
import { type ConfigFile, type ConfigScope, parseConfig } from "./config_file.ts";
import { Problems } from "./problems.ts";
import { findProjectFolder, type ProjectSearch } from "./project_folder.ts";
import { MANIFEST_BYTES_MAX, readSourceText } from "./source_text.ts";

export const CONFIG_FILE = "config.yaml";

/** Ended runs are removed after thirty days where no file says otherwise, milliseconds. */
export const RETENTION_MS = 30 * 24 * 3_600_000;
/** So many ended runs stay where no file says otherwise. */
export const MAX_RUNS = 1_000;

/** Where the files may be. */
export interface ConfigPlaces extends ProjectSearch {
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
}

/** Settings for work in a folder: those of the user and, over them, of its project. Throws INVALID (exit 2) with all mistakes of both. */
export async function loadConfig(places: ConfigPlaces): Promise<ConfigFile> {
  const { storage, config, cwd } = places;
  const problems = new Problems();
  const reading = { storage, cwd, problems };
  const user = await read(join(config, CONFIG_FILE), "user", reading);
  const folder = await findProjectFolder(places);
  const project = folder === undefined || folder.refused !== undefined
    ? undefined
    : await read(join(folder.path, CONFIG_FILE), "project", reading);
  if (problems.count > 0) throw problems.toError();
  return { ...user, ...project, ping: { ...user?.ping, ...project?.ping } };
}

/** What the user alone sets: for what is about all runs. Throws INVALID (exit 2) with all mistakes. */
export async function loadUserConfig(storage: Storage, config: string): Promise<ConfigFile> {
  const problems = new Problems();
  const user = await read(join(config, CONFIG_FILE), "user", { storage, cwd: "/", problems });
  if (problems.count > 0) throw problems.toError();
  return user ?? { ping: {} };
}

async function read(
  path: string,
  scope: ConfigScope,
  { storage, cwd, problems }: { storage: Storage; cwd: string; problems: Problems },
): Promise<ConfigFile | undefined> {
  const file = cwd === "/" ? path : shownFrom(cwd, path);
  const source = await readSourceText(storage, path, MANIFEST_BYTES_MAX);
  if (source.kind === "absent") return undefined;
  if (source.kind === "unusable") {
    problems.add(file, source.position, source.message);
    return undefined;
  }
  return parseConfig(source.text, { file, scope }, problems);
}
