/**
 * `AGENTS.md`: what the people of a project tell every agent that works in it.
 *
 * It is the nearest one upwards from the run's working folder, up to the root of the repository, HOME, or the border of the file system; those below the working folder are for the agent to read when it comes there. Another file than a regular one isn't used: a link could lead to anything. It comes with a clone and changes what an agent is told, so it is used only once a person has agreed to its text (`trust.ts`).
 */
import { join } from "node:path";
import { sha256Hex } from "../base/json.ts";
import type { ProjectFile, ProjectSearch } from "./project_folder.ts";
import { foldersUpwards } from "./project_folder.ts";
import { readSourceText } from "./source_text.ts";

export const NOTES_FILE = "AGENTS.md";
/** Of longer notes only the beginning is told, bytes of UTF-8. */
export const NOTES_BYTES_MAX = 32 * 1024;
/** Marks the root of a repository: what lies above is another project's. */
const REPOSITORY = ".git";

/** Notes that were found. */
export interface ProjectNotes {
  /** Cut to its limit. */
  text: string;
  projectFile: ProjectFile;
  /** What a user should know of them, a sentence each. */
  notices: string[];
}

/** The notes for a working folder; only a notice where the file can't be used. */
export async function findNotes(
  search: ProjectSearch,
): Promise<ProjectNotes | { notice: string } | undefined> {
  for await (const folder of foldersUpwards(search)) {
    const path = join(folder, NOTES_FILE);
    const facts = await search.storage.stat(path).catch(() => undefined);
    if (facts !== undefined) return await readNotes(search, path, facts.kind);
    if (await search.storage.stat(join(folder, REPOSITORY)).catch(() => undefined)) {
      return undefined;
    }
  }
  return undefined;
}

async function readNotes(
  { storage }: ProjectSearch,
  path: string,
  kind: string,
): Promise<ProjectNotes | { notice: string } | undefined> {
  const ignored = (why: string) => ({ notice: `"${path}" is ignored: ${why}` });
  if (kind === "link") return ignored("it is a link; make it a file");
  const source = await readSourceText(storage, path);
  if (source.kind === "absent") return undefined;
  if (source.kind === "unusable") return ignored(source.message);
  if (source.text.trim() === "") return undefined;
  const { text, bytes } = cutNotes(source.text);
  return {
    text,
    projectFile: {
      name: NOTES_FILE,
      path,
      contentHash: sha256Hex(source.text),
      effects: ["tells every agent that works in this project what it says"],
    },
    notices: bytes <= NOTES_BYTES_MAX ? [] : [
      `"${path}" has ${bytes} bytes; the agent is told its first ${NOTES_BYTES_MAX}`,
    ],
  };
}

/** The beginning of a text, cut on a code point, and the bytes of the whole. */
function cutNotes(text: string): { text: string; bytes: number } {
  const whole = new TextEncoder().encode(text);
  if (whole.length <= NOTES_BYTES_MAX) return { text, bytes: whole.length };
  // As a stream, half a character at the end is held back.
  const head = new TextDecoder("utf-8", { ignoreBOM: true })
    .decode(whole.subarray(0, NOTES_BYTES_MAX), { stream: true });
  return { text: `${head}\n[… the rest of ${NOTES_FILE} was left out]`, bytes: whole.length };
}
