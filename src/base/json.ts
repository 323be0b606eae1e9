/** JSON values: their type, one canonical form for hashing, and the repair of text that strict readers refuse. */
import { newSha256 } from "./hash.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Deepest nesting of a value that rnix takes from a server or a model. What is deeper is refused where it comes in, so that every function behind may be recursive. */
export const JSON_DEPTH_MAX = 128;

/** Whether `value` has more than `depthMax` levels of containers. Itself it goes no deeper than that. */
export function nestsDeeper(value: Json, depthMax: number = JSON_DEPTH_MAX): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depthMax === 0) return true;
  return Object.values(value).some((member) => nestsDeeper(member, depthMax - 1));
}

/** Where a number may be that is too large for one of JavaScript: most texts have none. */
const MAYBE_LARGE = /\d{16}|e\+?\d{3}/i;

/** The first number of a JSON text that is another one once it is read: a whole number of more digits than JavaScript keeps, or one beyond all limits. Fractions are approximate to everyone. The text must be JSON, and no deeper than `JSON_DEPTH_MAX`. */
export function alteredNumber(text: string): string | undefined {
  if (!MAYBE_LARGE.test(text)) return undefined;
  let altered: string | undefined;
  JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    if (typeof value === "number" && source !== undefined && isAltered(value, source)) {
      altered ??= source;
    }
    return value;
  });
  return altered;
}

function isAltered(value: number, source: string): boolean {
  if (!Number.isFinite(value)) return true;
  return /^-?\d+$/.test(source) && !Number.isSafeInteger(value) && String(value) !== source;
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON text with sorted keys: equal values give equal bytes. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) =>
    `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`
  );
  return `{${members.join(",")}}`;
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return newSha256().update(data).digest("hex");
}

/** The same value with every string passed through `change`, keys included; unchanged parts keep their identity. */
export function mapStrings(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => mapStrings(item, change));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isJsonObject(value)) return value;
  let changed = false;
  const members: [string, Json][] = Object.entries(value).map(([key, member]) => {
    const newKey = change(key);
    const newMember = mapStrings(member, change);
    changed ||= newKey !== key || newMember !== member;
    return [newKey, newMember];
  });
  return changed ? Object.fromEntries(members) : value;
}

/** Lone surrogates become U+FFFD, so that every strict UTF-8 reader takes the text. */
export function wellFormed(value: Json): Json {
  return mapStrings(value, (text) => text.isWellFormed() ? text : text.toWellFormed());
}
