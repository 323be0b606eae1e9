/**
 * The `.rnix/` folder of the project one stands in: the nearest one upwards, up to HOME or the border of the file system.
 *
 * One that another user owns or can write is not followed, nor is a link: whoever can put files there could choose what runs. The search ends there all the same, so that a bad one never uncovers another.
 */
import { dirname, join } from "node:path";
import type { FileFacts, Storage } from "../base/storage.ts";

export const PROJECT_FOLDER = ".rnix";

/** Where the search starts and ends, and whose folders are followed. */
export interface ProjectSearch {
  storage: Storage;
  /** Absolute. */
  cwd: string;
  home: string | undefined;
  uid: number;
}

/** A `.rnix/` that was found; `refused` says why it isn't followed, and what to do. */
export interface ProjectFolder {
  path: string;
  refused?: string;
}

/** A file of a project that decides what is started, where a key is sent or what an agent is told: it needs trust. */
export interface ProjectFile {
  /** Of the files beside a `SKILL.md` each is one too. */
  name: "providers.yaml" | "mcp.yaml" | "SKILL.md" | "AGENTS.md";
  /** Absolute. */
  path: string;
  contentHash: string;
  /** What it would have done, a line each, for a person to judge. */
  effects: string[];
}

const OTHERS_MAY_WRITE = 0o022;

/** The nearest `.rnix/`, or folder of another name; undefined when there is none. */
export async function findProjectFolder(
  search: ProjectSearch,
  name = PROJECT_FOLDER,
): Promise<ProjectFolder | undefined> {
  for await (const folder of foldersUpwards(search)) {
    const path = join(folder, name);
    const facts = await search.storage.stat(path);
    if (facts === undefined) continue;
    const refused = reasonToRefuse(path, facts, search.uid);
    return refused === undefined ? { path } : { path, refused };
  }
  return undefined;
}

/** The folder one stands in and those above it, up to HOME or the border of the file system. */
export async function* foldersUpwards(search: ProjectSearch): AsyncGenerator<string> {
  const start = await search.storage.stat(search.cwd);
  for (let folder = search.cwd;; folder = dirname(folder)) {
    const here = folder === search.cwd ? start : await search.storage.stat(folder);
    if (here?.deviceId !== start?.deviceId) return;
    yield folder;
    if (folder === search.home || folder === dirname(folder)) return;
  }
}

function reasonToRefuse(path: string, facts: FileFacts, uid: number): string | undefined {
  const ignored = `"${path}" is ignored: `;
  if (facts.kind === "link") return `${ignored}it is a link; make it a folder`;
  if (facts.kind !== "folder") return `${ignored}it is not a folder`;
  if (facts.uid !== undefined && facts.uid !== uid) {
    return `${ignored}it belongs to user ${facts.uid}, not to you (${uid})`;
  }
  if (facts.mode !== undefined && (facts.mode & OTHERS_MAY_WRITE) !== 0) {
    return `${ignored}other users may write it; run "chmod go-w ${path}"`;
  }
  return undefined;
}
