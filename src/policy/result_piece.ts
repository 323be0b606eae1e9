/**
 * A piece of a result that was cut: how it is asked for, and what is given.
 *
 * Places are offsets in characters (UTF-16 units) of the whole text; a piece begins and ends between characters, so an emoji is in one of two pieces, whole. A piece and its closing note stay within the limit that the result was cut to, and a piece always brings at least one character, so that reading on comes to an end.
 */
import type { TokenCounter } from "./token_counter.ts";

/** Model-facing name of the tool that reads cut results. */
export const READ_RESULT = "ReadResult";

/** Digits of a blob's hash by which it is named to a model. */
const NAME_CHARS = 12;
/** A piece may have this many tokens, however small the limit of the tool is. */
export const PIECE_TOKENS_MIN = 128;

/** A blob's name as a model is told it. */
export function resultName(sha256: string): string {
  return sha256.slice(0, NAME_CHARS);
}

/** Arguments that read a result from a place on. */
export function placeOf(sha256: string, offset: number): string {
  return JSON.stringify({ result: resultName(sha256), offset });
}

export interface PieceRequest {
  /** Where to begin, in characters; inside of one it is moved to its beginning. */
  offset: number;
  /** At most so many characters. */
  limit?: number | undefined;
  tokensMax: number;
}

/** The piece with a note on where it goes on; undefined where nothing is at `offset`. */
export function pieceOf(
  counter: TokenCounter,
  text: string,
  { offset, limit = text.length, tokensMax }: PieceRequest,
): string | undefined {
  if (offset >= text.length) return undefined;
  const from = borderAt(text, offset);
  const wanted = text.slice(from, Math.max(borderAt(text, from + limit), borderAfter(text, from)));
  const most = Math.max(tokensMax, PIECE_TOKENS_MIN);
  let budget = most - counter.count(noteOf(text.length, from, text.length));
  for (;;) {
    const piece = counter.head(wanted, budget) || text.slice(from, borderAfter(text, from));
    const whole = piece + noteOf(text.length, from, from + piece.length);
    const over = counter.count(whole) - most;
    if (over <= 0 || piece.length <= 2) return whole;
    // Joined parts can take a token more than apart.
    budget -= over;
  }
}

function noteOf(length: number, from: number, to: number): string {
  const place = `characters ${from} to ${to} of ${length}`;
  return `\n[… ${place}; ${to < length ? `it goes on at offset ${to}` : "this is the end"} …]`;
}

/** `at`, or the beginning of the character that it is inside of. */
function borderAt(text: string, at: number): number {
  if (at >= text.length) return text.length;
  return at > 0 && isInside(text, at) ? at - 1 : at;
}

/** The end of the character that begins at `at`. */
function borderAfter(text: string, at: number): number {
  return isInside(text, at + 1) ? at + 2 : at + 1;
}

/** Whether `at` stands between the halves of one character. */
function isInside(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1));
}
