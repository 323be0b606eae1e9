/** `Grep`: lines of files that fit a regular expression. */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction.ts";
import { SysError } from "../../base/errors.ts";
import { relative } from "../../base/posix_path.ts";
import { type BuiltinTool, textAnswer } from "../builtin.ts";
import { isSet, optionalText, schemaOf, textOf } from "./arguments.ts";
import { counted, looksBinary, readWhole } from "./file_text.ts";
import { checkPattern, cutNote, FOLDER_PROPERTY } from "./glob_tool.ts";
import { type LinePattern, linePattern, PatternThread } from "./pattern_thread.ts";
import { filesBelow, type Walk } from "./walk.ts";
import { type Located, refused, type WorkingFolder } from "./working_folder.ts";

const LINES_MAX = 200;
const LINE_CHARS_MAX = 300;
/** Larger files are passed over, and counted; bytes. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;
/** Text that goes to the matcher at once, bytes. */
const BATCH_BYTES = 1024 * 1024;
/** Paths that are looked at together. */
const BATCH_PATHS = 500;

export function grepTool(folder: WorkingFolder, secrets: Redactor): BuiltinTool {
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
      if (from.kind === undefined) throw refused("NOT_FOUND", from.shown, "There is no such file");
      const pattern = linePattern(textOf(input, "pattern"), {
        ignoreCase: isSet(input, "ignore_case"),
      });
      const thread = new PatternThread();
      try {
        const search = new Search({ folder, thread, pattern, secrets, signal }, input);
        // Of one file that is named itself it is told why it can't be searched.
        if (from.kind === "file") {
          await search.takeText(from.path, await searchable(from));
          return textAnswer(await search.end());
        }
        const walk: Walk = { root: from.path, signal };
        await search.walk(walk);
        return textAnswer(await search.end() + cutNote(walk));
      } finally {
        thread.close();
      }
    },
  };
}

/** Rejects with a SysError for what can't be searched. */
async function searchable(located: Located): Promise<string> {
  const bytes = await readWhole(located, FILE_BYTES_MAX);
  if (looksBinary(bytes)) throw refused("INVALID", located.shown, "It is no text file");
  return new TextDecoder().decode(bytes);
}

interface SearchDeps {
  folder: WorkingFolder;
  thread: PatternThread;
  pattern: LinePattern;
  /** Taken out of a line before it is cut. */
  secrets: Redactor;
  signal: AbortSignal;
}

class Search {
  readonly #deps: SearchDeps;
  readonly #glob: string | undefined;
  readonly #filesOnly: boolean;
  #paths: string[] = [];
  #batch: { path: string; text: string }[] = [];
  #bytes = 0;
  #lines: string[] = [];
  #found = 0;
  #tooLarge = 0;
  #unread = 0;

  constructor(deps: SearchDeps, input: JsonObject) {
    this.#deps = deps;
    this.#glob = optionalText(input, "glob");
    if (this.#glob !== undefined) checkPattern(this.#glob);
    this.#filesOnly = isSet(input, "files_only");
  }

  /** All files below, until enough was found. */
  async walk(walk: Walk): Promise<void> {
    for await (const path of filesBelow(walk)) {
      if (this.#paths.push(path) < BATCH_PATHS) continue;
      if (await this.#takePaths(walk.root)) return;
    }
    await this.#takePaths(walk.root);
  }

  async takeText(path: string, text: string): Promise<void> {
    this.#batch.push({ path, text });
    this.#bytes += text.length;
    if (this.#bytes >= BATCH_BYTES) await this.#match();
  }

  /** What was found, as text. */
  async end(): Promise<string> {
    await this.#match();
    const more = this.#found > LINES_MAX ? "\n(and more: narrow the pattern or the glob)" : "";
    const large = this.#tooLarge > 0
      ? `\n(${counted(this.#tooLarge, "file")} over ${FILE_BYTES_MAX} bytes not looked into)`
      : "";
    const unread = this.#unread > 0 ? `\n(${counted(this.#unread, "file")} couldn't be read)` : "";
    const lines = this.#lines.length === 0 ? "No line fits" : this.#lines.join("\n");
    return lines + more + large + unread;
  }

  /** Whether enough was found. */
  async #takePaths(root: string): Promise<boolean> {
    const paths = this.#paths;
    this.#paths = [];
    const { thread, signal } = this.#deps;
    const below = paths.map((path) => relative(root, path));
    const fits = this.#glob === undefined
      ? undefined
      : await thread.paths(this.#glob, below, signal);
    for (const [index, path] of paths.entries()) {
      if (signal.aborted) throw new SysError("DRIVER", "The search was cancelled");
      if (fits !== undefined && fits[index] !== true) continue;
      const text = await this.#textOf(path);
      if (text !== undefined) await this.takeText(path, text);
      if (this.#found > LINES_MAX) return true;
    }
    return false;
  }

  async #match(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    if (batch.length === 0) return;
    const { thread, pattern, signal } = this.#deps;
    const found = await thread.lines(pattern, batch.map(({ text }) => text), signal);
    batch.forEach(({ path, text }, index) => this.#keep(path, text, found[index] ?? []));
  }

  #keep(path: string, text: string, numbers: readonly number[]): void {
    if (numbers.length === 0) return;
    const shown = this.#deps.folder.show(path);
    if (this.#filesOnly) return this.#tell(shown);
    const lines = text.split("\n");
    for (const number of numbers) {
      if (this.#found > LINES_MAX) return;
      const line = this.#deps.secrets.redact((lines[number] ?? "").replace(/\r$/, ""));
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
      return await searchable(await this.#deps.folder.locateExisting(path, "file"));
    } catch (thrown) {
      const code = thrown instanceof SysError ? thrown.code : undefined;
      if (code === "RESOURCE_EXHAUSTED") this.#tooLarge += 1;
      if (code === "PERMISSION") this.#unread += 1;
      return undefined;
    }
  }
}
