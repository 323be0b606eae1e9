/**
 * Text of models, servers and files made fit for a terminal.
 *
 * Whatever could move the cursor, change colours, set titles or reorder letters is shown as an escape instead of being obeyed.
 */

// deno-lint-ignore no-control-regex
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function escapeOf(character: string): string {
  const code = character.charCodeAt(0);
  return code > 0xff
    ? `\\u${code.toString(16).padStart(4, "0")}`
    : `\\x${code.toString(16).padStart(2, "0")}`;
}

/** Keeps line breaks and tabs; `\r\n` becomes `\n`. */
export function plainText(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROLS, escapeOf);
}

/** JSON that a terminal can be shown: what JSON leaves as it is and a terminal would obey is an escape. The value is the same. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** As one line: runs of white space become one blank. */
export function oneLine(text: string): string {
  return plainText(text.trim().replace(/\s+/g, " "));
}

/** At most `columns` wide, cut between letters, the cut marked with `…`. */
export function clipped(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  if (ONE_COLUMN_EACH.test(text)) return `${text.slice(0, Math.max(0, columns - 1))}…`;
  let kept = "";
  let width = 1;
  for (const { segment } of lettersOf(text)) {
    width += segmentWidth(segment);
    if (width > columns) break;
    kept += segment;
  }
  return `${kept}…`;
}

let segmenter: Intl.Segmenter | undefined;

/** The tables for this take 10 ms to load, so they wait for the first text that needs them. */
function lettersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
}

const ONE_COLUMN_EACH = /^[\x20-\x7e└…]*$/;

/** Columns of a terminal that the text takes. */
export function textWidth(text: string): number {
  if (ONE_COLUMN_EACH.test(text)) return text.length;
  let width = 0;
  for (const { segment } of lettersOf(text)) width += segmentWidth(segment);
  return width;
}

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|^\p{Emoji_Presentation}|\ufe0f|^[\u{20000}-\u{3fffd}]/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\u200b-\u200d\u2060\ufeff]+$/u;

function segmentWidth(segment: string): number {
  if (INVISIBLE.test(segment)) return 0;
  return WIDE.test(segment) ? 2 : 1;
}

/**
 * The same for text that comes in pieces: what may be half of something (a carriage return, half a surrogate pair) waits for the next piece.
 */
export class PlainStream {
  #held = "";

  take(piece: string): string {
    const text = this.#held + piece;
    const half = /[\r\ud800-\udbff]$/.test(text) ? 1 : 0;
    this.#held = half === 0 ? "" : text.slice(-1);
    return plainText(half === 0 ? text : text.slice(0, -1));
  }

  /** What is still held, at the end. */
  end(): string {
    const rest = plainText(this.#held.toWellFormed());
    this.#held = "";
    return rest;
  }
}
