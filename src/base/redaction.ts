/**
 * Takes secret values out of everything that is stored, shown or given to a model.
 *
 * By value, not by name: a secret is found plain, JSON-escaped (also JSON within JSON), percent-encoded in any mix, and as base64 or base64url at any of the three alignments, on one line or many, also across the chunks of a stream. Results pass the `intake` level once, before anything sees them; every sink passes `sink`, which knows more secrets.
 */
import { Buffer } from "node:buffer";
import { ByteMatcher, ESCAPE_CHARS_MAX, type TextView } from "./byte_matcher.ts";
import { isJsonObject, type Json } from "./json.ts";

/** What stands in place of a secret. */
export const REDACTED = "[redacted]";

/** Shorter values are no secrets: replacing them would destroy ordinary text. UTF-16 units. */
export const SECRET_CHARS_MIN = 6;
/** A shorter line of a longer secret gives little away and may be ordinary text. UTF-16 units. */
const SECRET_LINE_CHARS_MIN = 12;

/** Base64 of fewer characters stands on one line. */
const WRAPPED_CHARS_MIN = 56;

/** Base64 characters that hold bits of the secret alone, with `lead` foreign bytes before it in its group of three. */
function base64Core(secret: Uint8Array, lead: number): string {
  const padded = Buffer.concat([new Uint8Array(lead), secret]);
  return padded.toString("base64").slice(
    Math.ceil(lead * 8 / 6),
    Math.floor(padded.length * 8 / 6),
  );
}

function jsonEscaped(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const ascii = escaped.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return [escaped, ascii];
}

/** Lines of a secret that has several: they can come one by one, numbered, indented, with other line ends, or as lines of a log. */
function linesOf(secret: string): string[] {
  if (!secret.trim().includes("\n")) return [];
  return secret.split("\n").map((line) => line.trim())
    .filter((line) => line.length >= SECRET_LINE_CHARS_MIN)
    .flatMap((line) => [line, ...jsonEscaped(line)]);
}

/** The secret as base64 and base64url, at every alignment. */
function base64Of(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret);
  const base64 = [0, 1, 2].map((lead) => base64Core(bytes, lead));
  return [...base64, ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))];
}

/** Every other text that gives `secret` away, percent-encoding aside. */
function formsOf(secret: string): string[] {
  const escaped = jsonEscaped(secret);
  const twice = escaped.flatMap(jsonEscaped);
  return [secret, secret.trim(), ...linesOf(secret), ...escaped, ...twice];
}

function matcherOf(forms: ReadonlySet<string>): ByteMatcher | undefined {
  const encoder = new TextEncoder();
  const needles = [...forms].map((form) => encoder.encode(form));
  return needles.length === 0 ? undefined : new ByteMatcher(needles);
}

/** Spans of several scans as one list, in order, overlapping ones merged. */
function mergeSpans(lists: readonly number[][]): number[] {
  const found = lists.filter((list) => list.length > 0);
  if (found.length <= 1) return found[0] ?? [];
  const pairs: [number, number][] = [];
  for (const list of found) {
    for (let at = 0; at < list.length; at += 2) pairs.push([list[at] ?? 0, list[at + 1] ?? 0]);
  }
  pairs.sort((a, b) => a[0] - b[0]);
  const merged: number[] = [];
  for (const [start, end] of pairs) {
    const last = merged.length - 1;
    if (merged.length > 0 && start < (merged[last] ?? 0)) {
      merged[last] = Math.max(end, merged[last] ?? 0);
    } else merged.push(start, end);
  }
  return merged;
}

/** Spans to replace, and where the text's end leaves something unfinished. */
interface Findings {
  spans: number[];
  unfinishedFrom: number;
}

/** Knows a set of secrets and replaces them. Without secrets every method gives back its argument. */
export class Redactor {
  readonly #matcher: ByteMatcher | undefined;
  /** Of what may stand on several lines. */
  readonly #wrapped: ByteMatcher | undefined;
  readonly #hasSpace: boolean;
  readonly #hasNumber: boolean;

  /** Values shorter than `SECRET_CHARS_MIN` are ignored. Throws RESOURCE_EXHAUSTED for more than megabytes of secrets. */
  constructor(secrets: Iterable<string>) {
    const forms = new Set<string>();
    const wrapped = new Set<string>();
    for (const secret of secrets) {
      if (secret.length < SECRET_CHARS_MIN) continue;
      const base64 = base64Of(secret);
      for (const form of [...formsOf(secret), ...base64]) {
        if (form.length >= SECRET_CHARS_MIN) forms.add(form);
      }
      for (const form of base64) if (form.length >= WRAPPED_CHARS_MIN) wrapped.add(form);
    }
    this.#matcher = matcherOf(forms);
    this.#wrapped = matcherOf(wrapped);
    this.#hasSpace = [...forms].some((form) => form.includes(" "));
    this.#hasNumber = [...forms].some((form) => /^[-+.e\d]+$/i.test(form));
  }

  /** Whether there is nothing to redact. */
  get isEmpty(): boolean {
    return this.#matcher === undefined;
  }

  redact(text: string): string {
    if (this.#matcher === undefined || text.length < SECRET_CHARS_MIN) return text;
    const { spans } = this.find(text, false);
    return spans.length === 0 ? text : replaceSpans(text, spans, 0, text.length);
  }

  /** The same value with its strings redacted, keys included, and numbers that are secrets; unchanged parts keep their identity. */
  redactJson(value: Json): Json {
    return this.#matcher === undefined ? value : this.#redactValue(value);
  }

  /** A redacted copy of a stream of text chunks. */
  stream(): RedactingStream {
    return new RedactingStream(this);
  }

  /** Where secrets stand in `text`. With `open`, more text may follow: what could still become one is left out of the search. */
  find(text: string, open: boolean): Findings {
    if (this.#matcher === undefined) return { spans: [], unfinishedFrom: text.length };
    const views: TextView[] = ["plain"];
    if (text.includes("%")) views.push("percent");
    if (this.#hasSpace && text.includes("+")) views.push("form");
    if (text.includes("\\")) views.push("escaped");
    const lists: number[][] = [];
    let unfinishedFrom = text.length;
    for (const view of views) {
      const scan = this.#matcher.scan(text, view, open ? openEnd(text, view) : text.length);
      lists.push(scan.spans);
      unfinishedFrom = Math.min(unfinishedFrom, scan.unfinishedFrom);
    }
    if (this.#wrapped !== undefined && /[\r\n\t \\]/.test(text)) {
      const end = open ? openEnd(text, "wrapped") : text.length;
      const scan = this.#wrapped.scan(text, "wrapped", end);
      lists.push(scan.spans);
      unfinishedFrom = Math.min(unfinishedFrom, scan.unfinishedFrom);
    }
    return { spans: mergeSpans(lists), unfinishedFrom: unitStart(text, unfinishedFrom) };
  }

  #redactValue(value: Json): Json {
    if (typeof value === "string") return this.redact(value);
    if (typeof value === "number") return this.#redactNumber(value);
    if (Array.isArray(value)) {
      const items = value.map((item) => this.#redactValue(item));
      return items.some((item, index) => item !== value[index]) ? items : value;
    }
    if (!isJsonObject(value)) return value;
    let changed = false;
    const members = new Map<string, Json>();
    for (const [key, member] of Object.entries(value)) {
      const newKey = freeKey(members, this.redact(key));
      const newMember = this.#redactValue(member);
      changed ||= newKey !== key || newMember !== member;
      members.set(newKey, newMember);
    }
    return changed ? Object.fromEntries(members) : value;
  }

  #redactNumber(value: number): Json {
    if (!this.#hasNumber) return value;
    const text = String(value);
    const redacted = this.redact(text);
    return redacted === text ? value : redacted;
  }
}

/** `key`, or with a number where redaction made two keys equal: no member may get lost. */
function freeKey(members: Map<string, Json>, key: string): string {
  if (!members.has(key)) return key;
  let number = 2;
  while (members.has(`${key} (${number})`)) number += 1;
  return `${key} (${number})`;
}

/** A text's end that more text could make an escaped character of. */
const HALF_ESCAPE = new RegExp(`\\\\{1,${ESCAPE_CHARS_MAX}}(?:u[0-9a-f]{0,3})?$`, "i");

/** A text's end that more text could make another break of lines. */
const HALF_BREAK = new RegExp(
  `(?:[\\r\\n\\t ]|\\\\{1,${ESCAPE_CHARS_MAX}}[nrt])*(?:\\d{0,7}\\\\{0,${ESCAPE_CHARS_MAX}})$`,
);
/** How much of an end is looked at for a break. UTF-16 units. */
const BREAK_CHARS_MAX = 256;

/** How far an unfinished text can be read: not into a half character, a half `%XX`, a half escape or a half break. */
function openEnd(text: string, view: TextView): number {
  const last = text.charCodeAt(text.length - 1);
  if (last >= 0xd800 && last < 0xdc00) return text.length - 1;
  if (view === "plain") return text.length;
  if (view === "wrapped") {
    const tail = text.slice(-BREAK_CHARS_MAX);
    return text.length - (HALF_BREAK.exec(tail)?.[0].length ?? 0);
  }
  if (view === "escaped") {
    const tail = text.slice(-ESCAPE_CHARS_MAX - 4);
    return text.length - (HALF_ESCAPE.exec(tail)?.[0].length ?? 0);
  }
  return text.length - (/%[0-9a-f]?$/i.exec(text.slice(-2))?.[0].length ?? 0);
}

/** `at`, or the start of the `%XX` or of the escape that it would cut in two. */
function unitStart(text: string, at: number): number {
  const before = at === text.length ? "" : text.slice(Math.max(0, at - ESCAPE_CHARS_MAX - 4), at);
  const escape = before.includes("\\") ? HALF_ESCAPE.exec(before) : null;
  if (escape !== null) return at - escape[0].length;
  for (const back of [1, 2]) {
    if (at >= back && /^%[0-9a-f]{2}/i.test(text.slice(at - back, at - back + 3))) return at - back;
  }
  return at;
}

function replaceSpans(text: string, spans: readonly number[], from: number, to: number): string {
  const parts: string[] = [];
  let at = from;
  for (let index = 0; index < spans.length; index += 2) {
    const start = spans[index] ?? 0;
    if (start >= to) break;
    if (start >= at) parts.push(text.slice(at, start), REDACTED);
    at = Math.max(at, spans[index + 1] ?? 0);
  }
  if (at < to) parts.push(text.slice(at, to));
  return parts.join("");
}

/**
 * Redacts chunk by chunk. All chunks' outputs and that of `flush` together are `redact` of all chunks together.
 *
 * It holds back only what could still turn out to be the beginning of a secret, always less than the longest needle.
 */
export class RedactingStream {
  readonly #redactor: Redactor;
  #held = "";
  /** How much of `#held` belongs to a secret already replaced in the output. */
  #covered = 0;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** What of the text so far is certain. */
  push(chunk: string): string {
    if (this.#redactor.isEmpty) return chunk;
    return this.#emit(this.#held + chunk, true);
  }

  /** What was held back; the stream may be used again afterwards. */
  flush(): string {
    return this.#redactor.isEmpty ? "" : this.#emit(this.#held, false);
  }

  #emit(text: string, open: boolean): string {
    const { spans, unfinishedFrom } = this.#redactor.find(text, open);
    const end = open ? unfinishedFrom : text.length;
    const rest = mergeWithCovered(spans, this.#covered);
    const output = replaceSpans(text, rest.spans, rest.covered, end);
    let covered = rest.covered;
    for (let index = 0; index < rest.spans.length; index += 2) {
      if ((rest.spans[index] ?? 0) < end) covered = Math.max(covered, rest.spans[index + 1] ?? 0);
    }
    this.#held = text.slice(end);
    this.#covered = Math.max(0, covered - end);
    return output;
  }
}

/** Spans without those that only prolong one already replaced. */
function mergeWithCovered(
  spans: readonly number[],
  covered: number,
): { spans: number[]; covered: number } {
  let index = 0;
  let reach = covered;
  while (index < spans.length && (spans[index] ?? 0) < reach) {
    reach = Math.max(reach, spans[index + 1] ?? 0);
    index += 2;
  }
  return { spans: spans.slice(index), covered: reach };
}

/** Both levels of a run. */
export interface Redaction {
  /** For results, before the model, the journal or anyone sees them: the same on every resume. */
  readonly intake: Redactor;
  /** For trace, logs, errors, lists and exports: knows literal environment and header values too. */
  readonly sink: Redactor;
}

/** Makes both levels; `sinkOnly` are values hidden in sinks and left alone in results. */
export function createRedaction(
  secrets: { intake: Iterable<string>; sinkOnly?: Iterable<string> },
): Redaction {
  const intakeValues = [...secrets.intake];
  const sinkValues = [...secrets.sinkOnly ?? []];
  const intake = new Redactor(intakeValues);
  return {
    intake,
    sink: sinkValues.length === 0 ? intake : new Redactor([...intakeValues, ...sinkValues]),
  };
}
