/**
 * Counts and cuts text by tokens, in bounded time.
 *
 * The tokenizer needs time quadratic in the length of a word, so text is given to it in short segments; a segment border may add a token, never hide one. It is loaded when first needed: a megabyte of tables that most runs never touch.
 */

/** UTF-16 units per segment. */
const SEGMENT_CHARS = 256;
const MERGE_CACHE_ENTRIES = 10_000;

/** Whether a text is surely within a limit: a token is at least one byte. */
export function surelyWithin(text: string, tokensMax: number): boolean {
  if (text.length > tokensMax) return false;
  return text.length * 3 <= tokensMax || new TextEncoder().encode(text).length <= tokensMax;
}

async function loadEncoding() {
  const { encode, setMergeCacheSize } = await import("gpt-tokenizer/encoding/cl100k_base");
  setMergeCacheSize(MERGE_CACHE_ENTRIES);
  // Text may hold what looks like a control token; it is text.
  const options = { disallowedSpecial: new Set<string>() };
  return (text: string): number => encode(text, options).length;
}

let loading: Promise<(text: string) => number> | undefined;

/** The counter, loaded once. */
export async function tokenCounter(): Promise<TokenCounter> {
  loading ??= loadEncoding();
  return new TokenCounter(await loading);
}

export class TokenCounter {
  readonly #countSegment: (text: string) => number;

  constructor(countSegment: (text: string) => number) {
    this.#countSegment = countSegment;
  }

  /** Tokens of `text`, counted no further than just over `stopAfter`. */
  count(text: string, stopAfter = Number.POSITIVE_INFINITY): number {
    let tokens = 0;
    for (let at = 0; at < text.length && tokens <= stopAfter;) {
      const end = borderBefore(text, at + SEGMENT_CHARS, at + 1);
      tokens += this.#countSegment(text.slice(at, end));
      at = end;
    }
    return tokens;
  }

  /** The longest beginning of at most `tokensMax` tokens, whole characters only. */
  head(text: string, tokensMax: number): string {
    let at = 0;
    for (let rest = tokensMax; at < text.length;) {
      const end = borderBefore(text, at + SEGMENT_CHARS, at + 1);
      const tokens = this.#countSegment(text.slice(at, end));
      if (tokens > rest) return text.slice(0, this.#headEnd(text, at, end, rest));
      rest -= tokens;
      at = end;
    }
    return text;
  }

  /** The longest end of at most `tokensMax` tokens, whole characters only. */
  tail(text: string, tokensMax: number): string {
    let at = text.length;
    for (let rest = tokensMax; at > 0;) {
      const start = borderAfter(text, at - SEGMENT_CHARS);
      const tokens = this.#countSegment(text.slice(start, at));
      if (tokens > rest) return text.slice(this.#tailStart(text, start, at, rest));
      rest -= tokens;
      at = start;
    }
    return text;
  }

  #headEnd(text: string, start: number, end: number, tokensMax: number): number {
    let [fits, over] = [start, end];
    while (over - fits > 1) {
      const middle = (fits + over) >> 1;
      if (this.#countSegment(text.slice(start, borderBefore(text, middle, start))) <= tokensMax) {
        fits = middle;
      } else over = middle;
    }
    return borderBefore(text, fits, start);
  }

  #tailStart(text: string, start: number, end: number, tokensMax: number): number {
    let [over, fits] = [start, end];
    while (fits - over > 1) {
      const middle = (fits + over) >> 1;
      if (this.#countSegment(text.slice(borderAfter(text, middle), end)) <= tokensMax) {
        fits = middle;
      } else over = middle;
    }
    return borderAfter(text, fits);
  }
}

/** Whether `at` stands between the halves of one character. */
function isInside(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) return false;
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

/** The nearest character border at or before `at`; the one after it where that would be before `least`. */
function borderBefore(text: string, at: number, least: number): number {
  const end = Math.min(at, text.length);
  if (!isInside(text, end)) return end;
  return end - 1 >= least ? end - 1 : end + 1;
}

/** The nearest character border at or after `at`. */
function borderAfter(text: string, at: number): number {
  const start = Math.max(at, 0);
  return isInside(text, start) ? start + 1 : start;
}
