/** `Grep`: lines of files that fit a regular expression. */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import { matchesGlob } from "node:path";
import type { JsonObject } from "../../base/json.ts";
import { relative } from "../../base/posix_path.ts";
import { type BuiltinTool, textAnswer } from "../builtin.ts";
import { isSet, optionalText, schemaOf, textOf } from "./arguments.ts";
import { looksBinary, readWhole } from "./file_text.ts";
import { checkPattern, cutNote, FOLDER_PROPERTY } from "./glob_tool.ts";
import { LineMatcher } from "./line_matcher.ts";
import { filesBelow, type Walk } from "./walk.ts";
import type { WorkingFolder } from "./working_folder.ts";

const LINES_MAX = 200;
const LINE_CHARS_MAX = 300;
/** Larger files are passed over, bytes. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** Text that goes to the matcher at once, bytes. */
const BATCH_BYTES = 1024 * 1024;

export function grepTool(folder: WorkingFolder): BuiltinTool {
  return {
    definition: {
      name: "Grep",
      modelName: "Grep",
      description:
        `Finds lines that fit a regular expression (JavaScript's) in the text files of the working folder. At most ${LINES_MAX} lines are told, as path:line:text.`,
      inputSchema: schemaOf({
        pattern: { type: "string", minLength: 1 },
        folder: FOLDER_PROPERTY,
        glob: { type: "string", description: "Only files whose path fits, such as **/*.ts" },
        ignore_case: { type: "boolean" },
        files_only: { type: "boolean", description: "Tell only the paths of the files" },
      }, ["pattern"]),
    },
    effect: BUILTIN_EFFECTS.Grep,
    async run(input, { signal }) {
      const from = await folder.locate(optionalText(input, "folder") ?? ".");
      const matcher = new LineMatcher(textOf(input, "pattern"), {
        ignoreCase: isSet(input, "ignore_case"),
      });
      try {
        const walk: Walk = { root: from.path, signal };
        const search = new Search(folder, matcher, input, signal);
        const files = from.kind === "file" ? oneFile(from.path) : filesBelow(walk);
        for await (const path of files) {
          if (await search.take(path, relative(from.path, path))) break;
        }
        return textAnswer(await search.end() + cutNote(walk));
      } finally {
        matcher.close();
      }
    },
  };
}

async function* oneFile(path: string): AsyncGenerator<string> {
  yield path;
}

class Search {
  readonly #folder: WorkingFolder;
  readonly #matcher: LineMatcher;
  readonly #signal: AbortSignal;
  readonly #glob: string | undefined;
  readonly #filesOnly: boolean;
  #batch: { path: string; text: string }[] = [];
  #bytes = 0;
  #lines: string[] = [];
  #found = 0;

  constructor(
    folder: WorkingFolder,
    matcher: LineMatcher,
    input: JsonObject,
    signal: AbortSignal,
  ) {
    this.#folder = folder;
    this.#matcher = matcher;
    this.#signal = signal;
    this.#glob = optionalText(input, "glob");
    if (this.#glob !== undefined) checkPattern(this.#glob);
    this.#filesOnly = isSet(input, "files_only");
  }

  /** Whether enough was found. `below` is the path from the folder that is searched. */
  async take(path: string, below: string): Promise<boolean> {
    if (this.#glob !== undefined && !matchesGlob(below, this.#glob)) return false;
    const text = await this.#textOf(path);
    if (text === undefined) return false;
    this.#batch.push({ path, text });
    this.#bytes += text.length;
    if (this.#bytes >= BATCH_BYTES) await this.#match();
    return this.#found > LINES_MAX;
  }

  /** What was found, as text. */
  async end(): Promise<string> {
    await this.#match();
    if (this.#lines.length === 0) return "No line fits";
    const more = this.#found > LINES_MAX ? "\n(and more: narrow the pattern or the glob)" : "";
    return this.#lines.join("\n") + more;
  }

  async #match(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    if (batch.length === 0) return;
    const found = await this.#matcher.match(batch.map(({ text }) => text), this.#signal);
    batch.forEach(({ path, text }, index) => this.#keep(path, text, found[index] ?? []));
  }

  #keep(path: string, text: string, numbers: readonly number[]): void {
    if (numbers.length === 0) return;
    const shown = this.#folder.show(path);
    if (this.#filesOnly) return this.#tell(shown);
    const lines = text.split("\n");
    for (const number of numbers) {
      const line = (lines[number] ?? "").replace(/\r$/, "");
      const cut = line.length > LINE_CHARS_MAX
        ? `${line.slice(0, LINE_CHARS_MAX).toWellFormed()}…`
        : line;
      this.#tell(`${shown}:${number + 1}:${cut}`);
    }
  }

  #tell(line: string): void {
    this.#found += 1;
    if (this.#lines.length < LINES_MAX) this.#lines.push(line);
  }

  /** Undefined for what can't be searched. */
  async #textOf(path: string): Promise<string | undefined> {
    try {
      const located = await this.#folder.locateExisting(path, "file");
      const bytes = await readWhole(located, FILE_BYTES_MAX);
      return looksBinary(bytes) ? undefined : new TextDecoder().decode(bytes);
    } catch {
      return undefined;
    }
  }
}
