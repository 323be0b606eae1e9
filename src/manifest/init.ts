/**
 * `rnix init`: the user's configuration folder, the project's `.rnix/`, and on request the example agents.
 *
 * Everything that could stand in the way is looked at before anything is made. What exists is left as it is, and told. An example appears whole or not at all, and is trusted, since it came from the program itself.
 */
import { join } from "node:path";
import { SysError } from "../base/errors.ts";
import { findProgram } from "../base/find_program.ts";
import { withTilde } from "../base/paths.ts";
import type { Storage } from "../base/storage.ts";
import { EMBEDDED_AGENTS, EXAMPLE_AGENTS } from "./embedded.ts";
import { type EmbeddedAgent, loadAgentFile } from "./load_agent.ts";
import { MANIFEST_FILE } from "./names.ts";
import { PROJECT_FOLDER } from "./project_folder.ts";
import type { TrustStore } from "./trust.ts";

/** What `init` works on. */
export interface InitOptions {
  storage: Storage;
  /** Absolute: the project's folder. */
  cwd: string;
  /** Folder of the user's configuration (`RnixPaths.config`). */
  config: string;
  /** The client's environment: HOME for shorter paths, PATH for the preflight. */
  env: { [name: string]: string };
  trust: TrustStore;
  withMcpExamples: boolean;
}

/** What `init` did. */
export interface InitReport {
  /** One line for each thing made or kept, as they are printed. */
  lines: string[];
  /** Absolute paths of folders that were made. */
  created: string[];
  kept: string[];
}

/** Program that starts the servers of the examples. */
const EXAMPLES_NEED = "npx";
const CONFIG_MODE = 0o700;
const PROJECT_MODE = 0o755;
const FILE_MODE = 0o644;
const AGENTS = "agents";

/** Sets up a project. Throws NOT_FOUND when a needed program is missing and INVALID when something that is no folder is in the way; nothing was made then. */
export async function initProject(options: InitOptions): Promise<InitReport> {
  const { storage, cwd, config } = options;
  const project = join(cwd, PROJECT_FOLDER);
  await preflight(options, [config, join(config, AGENTS), project, join(cwd, AGENTS)]);
  const report: InitReport = { lines: [], created: [], kept: [] };
  const folders = [
    { path: config, shown: withTilde(config, options.env["HOME"]), mode: CONFIG_MODE },
    { path: project, shown: PROJECT_FOLDER, mode: PROJECT_MODE },
  ];
  for (const { path, shown, mode } of folders) {
    const isNew = await storage.stat(path) === undefined;
    if (isNew) await storage.makeFolder(join(path, AGENTS), mode);
    note(report, isNew, path, isNew ? `created ${shown}/` : `kept ${shown}/`);
  }
  if (!options.withMcpExamples) return report;
  for (const { name, config: configName } of EXAMPLE_AGENTS) {
    const agent = EMBEDDED_AGENTS.find((embedded) => embedded.name === name);
    if (agent === undefined) throw new SysError("INTERNAL", `No example agent "${name}"`);
    const isNew = await addExample(agent, options);
    const shown = `${AGENTS}/${name}/`;
    const line = isNew ? `added ${shown} with ${configName} config` : `kept ${shown}`;
    note(report, isNew, join(cwd, AGENTS, name), line);
  }
  return report;
}

function note(report: InitReport, isNew: boolean, path: string, line: string): void {
  report.lines.push(`[init] ${line}`);
  (isNew ? report.created : report.kept).push(path);
}

async function preflight(options: InitOptions, folders: readonly string[]): Promise<void> {
  for (const path of folders) {
    const facts = await options.storage.stat(path);
    if (facts === undefined || facts.kind === "folder" || facts.kind === "link") continue;
    throw new SysError("INVALID", `"${path}" is in the way: it should be a folder`, {
      hint: "move it away and run init again; nothing was made",
    });
  }
  if (!options.withMcpExamples) return;
  const path = options.env["PATH"];
  if (await findProgram(options.storage, EXAMPLES_NEED, path) !== undefined) return;
  throw new SysError(
    "NOT_FOUND",
    `The examples need "${EXAMPLES_NEED}", which is not on the PATH (${path ?? "unset"})`,
    { hint: "install Node.js, or run init without --with-mcp-examples; nothing was made" },
  );
}

/** Writes an example beside its place and moves it there in one step. False when something is there already. */
async function addExample(agent: EmbeddedAgent, options: InitOptions): Promise<boolean> {
  const { storage } = options;
  const agents = join(options.cwd, AGENTS);
  const place = join(agents, agent.name);
  if (await storage.stat(place) !== undefined) return false;
  const draft = join(agents, `.${agent.name}.new`);
  if (await storage.stat(draft) !== undefined) await storage.remove(draft, { recursive: true });
  await storage.makeFolder(draft, PROJECT_MODE);
  for (const [name, text] of Object.entries(agent.files)) {
    await writeNewFile(storage, join(draft, name), text);
  }
  await storage.syncFolder(draft);
  await storage.rename(draft, place);
  await storage.syncFolder(agents);
  const { ownFiles = [] } = await loadAgentFile(storage, join(place, MANIFEST_FILE));
  await options.trust.trust(ownFiles);
  return true;
}

async function writeNewFile(storage: Storage, path: string, text: string): Promise<void> {
  const file = await storage.open(path, { createNew: true, mode: FILE_MODE });
  try {
    file.append(new TextEncoder().encode(text));
    await file.sync();
  } finally {
    file.close();
  }
}
