/** `Glob`: files whose path fits a pattern, the newest first. */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import { relative } from "../../base/posix_path.ts";
import { type BuiltinTool, textAnswer } from "../builtin.ts";
import { optionalText, schemaOf, textOf } from "./arguments.ts";
import { counted } from "./file_text.ts";
import { PatternThread } from "./pattern_thread.ts";
import { filesBelow, type Walk, WALKED_MAX } from "./walk.ts";
import { refused, type WorkingFolder } from "./working_folder.ts";

const SHOWN_MAX = 200;
/** Files that are sorted by their time; of more only the first by name are. */
const FOUND_MAX = 10_000;
const PATTERN_CHARS_MAX = 1_000;
/** Paths that go to the pattern at once. */
const BATCH_PATHS = 2_000;

export const FOLDER_PROPERTY = {
  type: "string",
  description: "Folder to look in; the working folder if left out",
};

export function globTool(folder: WorkingFolder): BuiltinTool {
  return {
    definition: {
      name: "Glob",
      modelName: "Glob",
      description:
        `Finds files of the working folder by their path, such as **/*.ts or src/*.{js,ts}. At most ${SHOWN_MAX} are told, the newest first.`,
      inputSchema: schemaOf({
        pattern: { type: "string", minLength: 1 },
        folder: FOLDER_PROPERTY,
      }, ["pattern"]),
    },
    effect: BUILTIN_EFFECTS.Glob,
    async run(input, { signal }) {
      const pattern = textOf(input, "pattern");
      checkPattern(pattern);
      const from = await folder.locateExisting(optionalText(input, "folder") ?? ".", "folder");
      const walk: Walk = { root: from.path, signal };
      const found = await pathsThatFit(pattern, walk);
      if (found.length === 0) return textAnswer(`No file fits ${pattern}${cutNote(walk)}`);
      const sorted = await newestFirst(found);
      const shown = sorted.slice(0, SHOWN_MAX).map((path) => folder.show(path));
      return textAnswer(shown.join("\n") + moreNote(found.length, shown.length) + cutNote(walk));
    },
  };
}

/** At most `FOUND_MAX` of them. Rejects as `PatternThread.paths`. */
async function pathsThatFit(pattern: string, walk: Walk): Promise<string[]> {
  const thread = new PatternThread();
  const found: string[] = [];
  let batch: string[] = [];
  const match = async () => {
    const paths = batch.map((path) => relative(walk.root, path));
    const fits = await thread.paths(pattern, paths, walk.signal);
    found.push(...batch.filter((_, index) => fits[index] === true));
    batch = [];
  };
  try {
    for await (const path of filesBelow(walk)) {
      if (batch.push(path) >= BATCH_PATHS) await match();
      if (found.length >= FOUND_MAX) break;
    }
    await match();
    return found.slice(0, FOUND_MAX);
  } finally {
    thread.close();
  }
}

function moreNote(found: number, shown: number): string {
  if (found === shown) return "";
  const least = found === FOUND_MAX ? "at least " : "";
  return `\n(and ${least}${found - shown} more)`;
}

/** Throws INVALID for a pattern that would take too long to be read. */
export function checkPattern(pattern: string): void {
  if (pattern.length > PATTERN_CHARS_MAX || (pattern.match(/\*/g) ?? []).length > 16) {
    throw refused("INVALID", pattern, "The pattern is too long");
  }
}

/** Says so where the walk did not come to its end, or not everywhere. */
export function cutNote({ cut, unread = 0 }: Walk): string {
  return (cut === true ? `\n(only the first ${WALKED_MAX} names were looked at)` : "") +
    (unread > 0 ? `\n(${counted(unread, "folder")} couldn't be read)` : "");
}

async function newestFirst(paths: readonly string[]): Promise<string[]> {
  const dated = await Promise.all(paths.map(async (path) => {
    const facts = await Deno.lstat(path).catch(() => undefined);
    return { path, ms: facts?.mtime?.getTime() ?? 0 };
  }));
  return dated.sort((a, b) => b.ms - a.ms || (a.path < b.path ? -1 : 1)).map(({ path }) => path);
}
