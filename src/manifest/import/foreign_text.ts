/**
 * Reads the configuration files of other programs: JSON as editors write it (comments and trailing commas), and TOML.
 *
 * A mistake is told with its place. Nothing thrown by a parser gets out.
 */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { type Position, Problems } from "../problems.ts";
import { jsonMistakeAt } from "./json_mistake.ts";

export type ForeignFormat = "json" | "toml";

/** No file of this kind is larger. UTF-16 units. */
const TEXT_CHARS_MAX = 4 * 1024 * 1024;

/** What a text is, by its first character: JSON begins with a brace. */
export function formatOf(text: string): ForeignFormat {
  return /^\uFEFF?(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*\{/.test(text) ? "json" : "toml";
}

/** The mapping at the top of the file. Throws INVALID (exit 2) with the place of the mistake. */
export async function readForeign(
  text: string,
  { format, file }: { format: ForeignFormat; file: string },
): Promise<JsonObject> {
  if (text.length > TEXT_CHARS_MAX) {
    throw mistake(file, START, `The file is larger than ${TEXT_CHARS_MAX} characters`);
  }
  const plain = text.replace(/^\uFEFF/, "");
  const value = format === "json" ? readJson(plain, file) : await readToml(plain, file);
  if (isJsonObject(value)) return value;
  throw mistake(file, START, "Expected a mapping at the top of the file");
}

const START: Position = { line: 1, column: 1 };

function readJson(text: string, file: string): Json {
  const strict = strictJson(text);
  try {
    const value: Json = JSON.parse(strict);
    return value;
  } catch {
    // The parser's own words quote the text, which may hold secrets.
    const before = strict.slice(0, jsonMistakeAt(strict)).split("\n");
    const position = { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
    throw mistake(file, position, "Invalid JSON");
  }
}

const STRING = '"(?:[^"\\\\\\n]|\\\\.)*"';
const COMMENT = new RegExp(`${STRING}|//[^\\n]*|/\\*[\\s\\S]*?\\*/`, "g");
const TRAILING_COMMA = new RegExp(`${STRING}|,(?=\\s*[}\\]])`, "g");

/** Without comments and trailing commas; every other character keeps its place. */
function strictJson(text: string): string {
  const blank = (found: string) => found.startsWith('"') ? found : found.replace(/[^\n]/g, " ");
  return text.replace(COMMENT, blank).replace(TRAILING_COMMA, blank);
}

async function readToml(text: string, file: string): Promise<Json> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return toJson(parse(text));
  } catch (thrown) {
    if (thrown instanceof RangeError) throw mistake(file, START, "Nested too deeply to be read");
    if (!(thrown instanceof TomlError)) throw thrown;
    // Only the first line of its message: the others quote the text, which may hold secrets.
    const message = thrown.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "") ?? "";
    const { line, column } = thrown;
    throw mistake(file, { line, column }, `Invalid TOML: ${message}`);
  }
}

/** TOML has dates and large integers besides; as text they are what JSON can hold. */
function toJson(value: unknown): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== "object") return String(value);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toJson(member)]));
}

function mistake(file: string, position: Position, message: string): Error {
  const problems = new Problems();
  problems.add(file, position, message);
  return problems.toError();
}
