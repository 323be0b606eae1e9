/**
 * Finds many byte strings in one pass over a text: an Aho–Corasick automaton in flat arrays.
 *
 * Time is linear in the text whatever the needles (no backtracking), memory linear in their total length. A text can be read in several views, so that percent-encoded and escaped copies are found without a needle for each way of writing them.
 */
import { SysError } from "./errors.ts";

/** How a text is read: as it stands; with `%XX` decoded; with `%XX` decoded and `+` for a space; with characters that are escaped by backslashes, however often, decoded (`\/`, `\"`, `\u002f`); without line breaks and what begins the next line (blanks, a number and a tab), also where these are escaped. */
export type TextView = "plain" | "percent" | "form" | "escaped" | "wrapped";

/** Backslashes that are taken for one escape: of JSON within JSON, four deep. */
export const ESCAPE_CHARS_MAX = 8;

/** Most bytes of needles in all; a transition is packed into 32 bits. */
export const NEEDLE_BYTES_MAX = 2 ** 24 - 2;

const HEX: Int8Array = Int8Array.from({ length: 128 }, (_, unit) => {
  const digit = Number.parseInt(String.fromCharCode(unit), 16);
  return Number.isNaN(digit) ? -1 : digit;
});

/** Value of the two hex digits at `at`, or -1. */
function hexPair(text: string, at: number): number {
  const high = HEX[text.charCodeAt(at)] ?? -1;
  const low = HEX[text.charCodeAt(at + 1)] ?? -1;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/** The character that is escaped at `at`, where a backslash stands, and the offset after it; undefined where none is. */
function escapeAt(text: string, at: number, end: number): { code: number; to: number } | undefined {
  let from = at + 1;
  while (from < end && text.charCodeAt(from) === 0x5c) {
    from += 1;
    if (from - at > ESCAPE_CHARS_MAX) return undefined;
  }
  const unit = from < end ? text.charCodeAt(from) : 0;
  // A slash and both quotes.
  if (unit === 0x2f || unit === 0x22 || unit === 0x27) return { code: unit, to: from + 1 };
  if (unit !== 0x75 || from + 4 >= end) return undefined;
  const [high, low] = [hexPair(text, from + 1), hexPair(text, from + 3)];
  const isHalf = high >= 0xd8 && high < 0xe0;
  return high < 0 || low < 0 || isHalf ? undefined : { code: high * 256 + low, to: from + 5 };
}

/** A line break, or blanks, with the number that a tool put before the next line; each as it is or escaped. */
const BREAK = new RegExp(
  `(?:[\\r\\n\\t ]|\\\\{1,${ESCAPE_CHARS_MAX}}[nrt])+(?:\\d{1,7}(?:\\t|\\\\{1,${ESCAPE_CHARS_MAX}}t))?`,
  "y",
);

/** Length of the break at `at`, 0 where there is none. */
function breakAt(text: string, at: number): number {
  BREAK.lastIndex = at;
  return BREAK.test(text) ? BREAK.lastIndex - at : 0;
}

/** Transitions of the automaton: (node, byte) → node, in one open-addressing table. */
class Transitions {
  readonly #keys: Uint32Array;
  readonly #nodes: Uint32Array;
  readonly #mask: number;
  readonly #shift: number;

  constructor(countMax: number) {
    const bits = Math.max(4, Math.ceil(Math.log2(countMax + 1)) + 1);
    this.#keys = new Uint32Array(2 ** bits);
    this.#nodes = new Uint32Array(2 ** bits);
    this.#mask = 2 ** bits - 1;
    this.#shift = 32 - bits;
  }

  /** The slot of a transition, or the empty one where it belongs. */
  #slot(key: number): number {
    let slot = Math.imul(key, 0x9e3779b1) >>> this.#shift;
    while (this.#nodes[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) & this.#mask;
    return slot;
  }

  /** 0 when there is none: no transition leads to the root. */
  get(node: number, byte: number): number {
    return this.#nodes[this.#slot(((node << 8) | byte) >>> 0)] ?? 0;
  }

  set(node: number, byte: number, child: number): void {
    const key = ((node << 8) | byte) >>> 0;
    const slot = this.#slot(key);
    this.#keys[slot] = key;
    this.#nodes[slot] = child;
  }
}

/** What one scan found. */
export interface Scan {
  /** Matches as `[start, end)` in UTF-16 units, flat, in order, overlapping ones merged. */
  spans: number[];
  /** Where a match begins that the text's end leaves unfinished; the scanned end when none does. */
  unfinishedFrom: number;
}

export class ByteMatcher {
  readonly #transitions: Transitions;
  readonly #fail: Uint32Array;
  readonly #depth: Uint32Array;
  /** Length of the longest needle that ends at a node, 0 for none. */
  readonly #longest: Uint32Array;
  readonly #isFirst = new Uint8Array(256);
  readonly #isFirstPair = new Uint8Array(65_536);
  /** Source offsets of the last bytes, so that a match's length in bytes gives its start in the text. */
  readonly #offsets: Int32Array;

  /** Needles of at least two bytes; shorter ones are ignored. Throws RESOURCE_EXHAUSTED above `NEEDLE_BYTES_MAX`. */
  constructor(needles: readonly Uint8Array[]) {
    const used = needles.filter((needle) => needle.length >= 2);
    const bytes = used.reduce((sum, needle) => sum + needle.length, 0);
    if (bytes > NEEDLE_BYTES_MAX) {
      throw new SysError(
        "RESOURCE_EXHAUSTED",
        `Cannot redact ${bytes} bytes of secrets, at most ${NEEDLE_BYTES_MAX} are possible`,
        { hint: "Hand large secrets over as files" },
      );
    }
    this.#transitions = new Transitions(bytes);
    this.#depth = new Uint32Array(bytes + 1);
    this.#longest = new Uint32Array(bytes + 1);
    const parent = new Uint32Array(bytes + 1);
    const byteOf = new Uint8Array(bytes + 1);
    const nodes = this.#insert(used, parent, byteOf);
    this.#fail = this.#link(nodes, parent, byteOf);
    const longest = used.reduce((most, needle) => Math.max(most, needle.length), 1);
    this.#offsets = new Int32Array(2 ** Math.ceil(Math.log2(longest + 2)));
  }

  #insert(needles: readonly Uint8Array[], parent: Uint32Array, byteOf: Uint8Array): number {
    let nodes = 1;
    for (const needle of needles) {
      let node = 0;
      for (const byte of needle) {
        let child = this.#transitions.get(node, byte);
        if (child === 0) {
          child = nodes++;
          this.#transitions.set(node, byte, child);
          parent[child] = node;
          byteOf[child] = byte;
          this.#depth[child] = (this.#depth[node] ?? 0) + 1;
        }
        node = child;
      }
      this.#longest[node] = needle.length;
      this.#isFirst[needle[0] ?? 0] = 1;
      this.#isFirstPair[(needle[0] ?? 0) << 8 | (needle[1] ?? 0)] = 1;
    }
    return nodes;
  }

  /** Fail links, by rising depth: each needs only those of shallower nodes. */
  #link(nodes: number, parent: Uint32Array, byteOf: Uint8Array): Uint32Array {
    const fail = new Uint32Array(nodes);
    const depth = this.#depth;
    const order = Uint32Array.from({ length: nodes - 1 }, (_, index) => index + 1)
      .sort((a, b) => (depth[a] ?? 0) - (depth[b] ?? 0));
    for (const node of order) {
      if ((depth[node] ?? 0) > 1) {
        let link = fail[parent[node] ?? 0] ?? 0;
        const byte = byteOf[node] ?? 0;
        let target = this.#transitions.get(link, byte);
        while (target === 0 && link !== 0) {
          link = fail[link] ?? 0;
          target = this.#transitions.get(link, byte);
        }
        fail[node] = target;
      }
      if (this.#longest[node] === 0) this.#longest[node] = this.#longest[fail[node] ?? 0] ?? 0;
    }
    return fail;
  }

  #step(from: number, byte: number): number {
    let state = from;
    for (;;) {
      const child = this.#transitions.get(state, byte);
      if (child !== 0 || state === 0) return child;
      state = this.#fail[state] ?? 0;
    }
  }

  /** Searches `text[0, end)`. Characters are compared by their UTF-8 bytes; a lone surrogate matches nothing. */
  scan(text: string, view: TextView, end = text.length): Scan {
    const spans: number[] = [];
    const offsets = this.#offsets;
    const mask = offsets.length - 1;
    let state = 0;
    let count = 0;
    const feed = (byte: number, from: number, to: number) => {
      state = this.#step(state, byte);
      if (state === 0) return;
      offsets[++count & mask] = from;
      const length = this.#longest[state] ?? 0;
      if (length > 0) addSpan(spans, offsets[(count - length + 1) & mask] ?? 0, to);
    };
    for (let at = 0; at < end;) {
      const unit = text.charCodeAt(at);
      if (unit >= 0x80) {
        at = feedCodePoint(text, at, feed);
        continue;
      }
      if (state === 0 && !this.#mayBegin(text, at, view)) {
        at += 1;
        continue;
      }
      if (state !== 0 && view === "wrapped" && (unit <= 0x20 || unit === 0x5c)) {
        const skipped = breakAt(text, at);
        at += skipped;
        if (skipped > 0) continue;
      }
      const escape = unit === 0x5c && view === "escaped" ? escapeAt(text, at, end) : undefined;
      if (escape !== undefined) {
        feedCode(escape.code, [at, escape.to], feed);
        at = escape.to;
        continue;
      }
      const decoded = unit === 0x25 && (view === "percent" || view === "form") && at + 2 < end
        ? hexPair(text, at + 1)
        : -1;
      if (decoded >= 0) {
        feed(decoded, at, at + 3);
        at += 3;
      } else {
        feed(unit === 0x2b && view === "form" ? 0x20 : unit, at, at + 1);
        at += 1;
      }
    }
    const depth = this.#depth[state] ?? 0;
    return { spans, unfinishedFrom: depth === 0 ? end : offsets[(count - depth + 1) & mask] ?? 0 };
  }

  /** Whether a needle can begin at `at`, where an ASCII unit stands; the next unit is looked at where it is the next byte. */
  #mayBegin(text: string, at: number, view: TextView): boolean {
    if (view !== "plain" && view !== "wrapped") return true;
    const unit = text.charCodeAt(at);
    const next = text.charCodeAt(at + 1);
    const isPair = view === "plain" && next < 0x80;
    return isPair ? this.#isFirstPair[unit << 8 | next] === 1 : this.#isFirst[unit] === 1;
  }
}

/** Feeds the UTF-8 bytes of the character at `at`; gives the offset after it. */
function feedCodePoint(
  text: string,
  at: number,
  feed: (byte: number, from: number, to: number) => void,
): number {
  const code = text.codePointAt(at) ?? 0;
  const to = at + (code > 0xffff ? 2 : 1);
  feedCode(code, [at, to], feed);
  return to;
}

/** Feeds the UTF-8 bytes of a character that stands between two offsets. */
function feedCode(
  code: number,
  [at, to]: readonly [at: number, to: number],
  feed: (byte: number, from: number, to: number) => void,
): void {
  if (code < 0x80) return feed(code, at, to);
  if (code > 0xffff) {
    feed(0xf0 | code >> 18, at, to);
    feed(0x80 | code >> 12 & 0x3f, at, to);
  } else if (code > 0x7ff) {
    feed(0xe0 | code >> 12, at, to);
  }
  if (code > 0x7ff) feed(0x80 | code >> 6 & 0x3f, at, to);
  else feed(0xc0 | code >> 6, at, to);
  feed(0x80 | code & 0x3f, at, to);
}

/** Adds a span whose end is not before that of any earlier one; overlapping ones become one. */
function addSpan(spans: number[], start: number, end: number): void {
  let from = start;
  while (spans.length > 0 && (spans.at(-1) ?? 0) > from) {
    spans.pop();
    from = Math.min(from, spans.pop() ?? from);
  }
  spans.push(from, end);
}
