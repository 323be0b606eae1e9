/** `Read`: lines of a text file with their numbers, or an image as an image. Secrets go before lines are cut and numbered: half of one, or one over several lines, couldn't be told afterwards. */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction.ts";
import { type BuiltinAnswer, type BuiltinTool, textAnswer } from "../builtin.ts";
import { numberOf, PATH_PROPERTY, schemaOf, textOf } from "./arguments.ts";
import { looksBinary, readWhole } from "./file_text.ts";
import { type Located, openLocated, refused, type WorkingFolder } from "./working_folder.ts";

/** Lines that one call gives at most. */
const LINES_MAX = 2_000;
/** A longer line is cut, UTF-16 units. */
const LINE_CHARS_MAX = 2_000;
const IMAGE_BYTES_MAX = 5 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
const NUMBER_COLUMNS = 6;

const IMAGES: { readonly [end: string]: string } = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

export function readTool(folder: WorkingFolder, secrets: Redactor): BuiltinTool {
  return {
    definition: {
      name: "Read",
      modelName: "Read",
      description:
        `Reads a file of the working folder. A text file comes as lines with their numbers, at most ${LINES_MAX} at once: give offset to go on. An image comes as an image.`,
      inputSchema: schemaOf({
        path: PATH_PROPERTY,
        offset: { type: "integer", minimum: 1, description: "First line, from 1 on" },
        limit: { type: "integer", minimum: 1, maximum: LINES_MAX, description: "Number of lines" },
      }, ["path"]),
    },
    effect: BUILTIN_EFFECTS.Read,
    async run(input) {
      const located = await folder.locateExisting(textOf(input, "path"), "file");
      const type = IMAGES[located.path.split(".").at(-1)?.toLowerCase() ?? ""];
      if (type !== undefined) return await image(located, type);
      return await lines(located, input, secrets);
    },
  };
}

async function image(located: Located, mimeType: string): Promise<BuiltinAnswer> {
  const bytes = await readWhole(located, IMAGE_BYTES_MAX);
  return {
    kind: "answer",
    isError: false,
    content: [{ type: "image", data: bytes.toBase64(), mimeType }],
  };
}

async function lines(
  located: Located,
  input: JsonObject,
  secrets: Redactor,
): Promise<BuiltinAnswer> {
  const first = numberOf(input, "offset", 1);
  const limit = numberOf(input, "limit", LINES_MAX);
  const shown: string[] = [];
  let number = 0;
  let more = false;
  for await (const line of linesOf(located, secrets)) {
    number += 1;
    if (number < first) continue;
    if (shown.length === limit) {
      more = true;
      break;
    }
    shown.push(`${String(number).padStart(NUMBER_COLUMNS)}\t${line}`);
  }
  if (number === 0) return textAnswer("(the file is empty)");
  if (shown.length === 0) {
    return textAnswer(`The file has ${number} lines, none from ${first} on`, true);
  }
  const rest = more ? [`(more lines follow: go on with offset ${first + limit})`] : [];
  return textAnswer([...shown, ...rest].join("\n"));
}

/** Lines as they come, so that the end of a large file isn't read for its beginning. */
async function* linesOf(located: Located, secrets: Redactor): AsyncGenerator<string> {
  const file = await openLocated(located);
  const decoder = new TextDecoder();
  const clean = secrets.stream();
  const piece = new Uint8Array(PIECE_BYTES);
  let rest = "";
  try {
    for (let first = true;; first = false) {
      const got = await file.read(piece);
      if (got === null) break;
      const bytes = piece.subarray(0, got);
      if (first && looksBinary(bytes)) {
        throw refused("INVALID", located.shown, "It is no text file");
      }
      const parts = (rest + clean.push(decoder.decode(bytes, { stream: true }))).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) yield withoutReturn(part);
      // Of a line without end only the beginning is ever shown.
      if (rest.length > 2 * LINE_CHARS_MAX) rest = rest.slice(0, LINE_CHARS_MAX + 1);
    }
    const parts = (rest + clean.push(decoder.decode()) + clean.flush()).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) yield withoutReturn(part);
    if (rest !== "") yield cut(rest);
  } finally {
    file.close();
  }
}

function withoutReturn(line: string): string {
  return cut(line.endsWith("\r") ? line.slice(0, -1) : line);
}

function cut(line: string): string {
  if (line.length <= LINE_CHARS_MAX) return line;
  return `${line.slice(0, LINE_CHARS_MAX).toWellFormed()} … (line cut)`;
}
