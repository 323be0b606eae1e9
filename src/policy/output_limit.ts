/**
 * Cuts a result to its tool's `max_output_tokens`: head and tail stay, a marker between them says how much is missing and how the rest is read.
 *
 * Only text counts; images and other binary content pass as they are. The result depends on the arguments alone, so that a resume sees the same bytes. Text must be well formed and free of secrets already: a cut through a secret would hide it from redaction.
 */
import { blockText, isBinaryBlock, jsonWithoutBinary } from "../base/content_block.ts";
import { canonicalJson, isJsonObject, type Json } from "../base/json.ts";
import { placeOf, READ_RESULT } from "./result_piece.ts";
import { surelyWithin, type TokenCounter, tokenCounter } from "./token_counter.ts";

/** What is left of a result. */
export interface LimitedOutput<Kept> {
  content: Json[];
  structured: Json | undefined;
  /** Where the whole is kept, and the sizes, if anything was cut. */
  whole?: Kept;
  cut?: { tokens: number; keptTokens: number };
}

/** A kept text is named by the beginning of its hash. */
interface Hashed {
  sha256: string;
}

/** Share of the head in what is kept. */
const HEAD_SHARE = 2 / 3;
/** Of a longer text the tokens are estimated from this much of its beginning. UTF-16 units. */
const COUNTED_CHARS_MAX = 65_536;
/** A copy of binary content in structured content is looked for from this length on. UTF-16 units. */
const BINARY_CHARS_MIN = 1000;

/**
 * Cuts content blocks over `tokensMax` tokens of text; `keep` stores the whole text.
 *
 * Structured content goes where it only repeats the content, or is over the limit by itself; where there is no content it is cut as text.
 */
export async function limitOutput<Kept extends Hashed>(
  content: Json[],
  structured: Json | undefined,
  tokensMax: number,
  keep: (whole: string) => Promise<Kept>,
): Promise<LimitedOutput<Kept>> {
  const rest = structured === undefined || repeats(content, structured) ? undefined : structured;
  const restText = rest === undefined ? "" : jsonWithoutBinary(rest);
  const text = textOf(content);
  const isAlone = text === "" && !content.some(isBinaryBlock);
  if (surelyWithin(text, tokensMax) && surelyWithin(restText, tokensMax)) {
    return { content, structured: rest };
  }
  const counter = await tokenCounter();
  const isOver = (part: string) => counter.count(part, tokensMax) > tokensMax;
  const [textOver, restOver] = [isOver(text), isOver(restText)];
  if (!textOver && !restOver) return { content, structured: rest };
  const whole = restOver ? [text, restText].filter((part) => part !== "").join("\n") : text;
  const kept = await keep(whole);
  const tokens = sizeOf(counter, whole);
  // What the model is shown of it; structured content beside other content isn't shown at all.
  const shown = textOver ? text : isAlone ? restText : undefined;
  if (shown === undefined) {
    return {
      content,
      structured: undefined,
      whole: kept,
      cut: { tokens, keptTokens: counter.count(text) },
    };
  }
  const short = cutText(counter, shown, tokensMax, {
    tokens,
    blob: kept.sha256,
    images: content.filter(isBinaryBlock).length,
  });
  return {
    content: withText(content, short),
    structured: restOver ? undefined : rest,
    whole: kept,
    cut: { tokens, keptTokens: counter.count(short) },
  };
}

function textOf(content: readonly Json[]): string {
  return content.filter((block) => !isBinaryBlock(block)).map(blockText)
    .filter((text) => text !== "").join("\n");
}

/** The blocks with one text block in place of all text, where the first of it stood. */
function withText(content: readonly Json[], text: string): Json[] {
  const first = content.findIndex((block) => !isBinaryBlock(block));
  const block = { type: "text", text };
  if (first < 0) return [...content, block];
  return content.flatMap((old, index) =>
    index === first ? [block] : isBinaryBlock(old) ? [old] : []
  );
}

/** Whether structured content says again what the content says: its JSON as text, or the bytes of an image. */
function repeats(content: readonly Json[], structured: Json): boolean {
  const canonical = canonicalJson(structured);
  return content.some((block) => {
    if (!isJsonObject(block)) return false;
    if (typeof block.text === "string") return saysSame(block.text, canonical);
    return typeof block.data === "string" && block.data.length >= BINARY_CHARS_MIN &&
      canonical.includes(block.data);
  });
}

function saysSame(text: string, canonical: string): boolean {
  // Equal JSON has about equal length: escapes and white space are the only difference.
  if (text.length < canonical.length / 6 || !/^\s*[[{"\d\-tfn]/.test(text)) return false;
  try {
    return canonicalJson(JSON.parse(text)) === canonical;
  } catch {
    return false;
  }
}

/** Tokens of a text, estimated beyond its beginning. */
function sizeOf(counter: TokenCounter, text: string): number {
  if (text.length <= COUNTED_CHARS_MAX) return counter.count(text);
  return Math.round(
    counter.count(text.slice(0, COUNTED_CHARS_MAX)) * text.length / COUNTED_CHARS_MAX,
  );
}

interface CutFacts {
  tokens: number;
  blob: string;
  images: number;
}

/** Head, marker, tail: together at most `tokensMax` tokens. */
function cutText(counter: TokenCounter, text: string, tokensMax: number, facts: CutFacts): string {
  const markerFor = markerKind(counter, text, tokensMax, facts);
  // The longest marker: no place in the text takes more digits than its end.
  let budget = tokensMax - counter.count(markerFor(text.length));
  while (budget > 0) {
    const headTokens = Math.ceil(budget * HEAD_SHARE);
    const head = counter.head(text, headTokens);
    const tail = counter.tail(text.slice(head.length), budget - headTokens);
    const short = head + markerFor(head.length) + tail;
    const over = counter.count(short) - tokensMax;
    if (over <= 0) return short;
    // Joined parts can take a token more than apart.
    budget -= over;
  }
  return markerFor(0);
}

/** The most telling marker that leaves half of the limit for the text; for tiny limits just a sign, or nothing. It is given the place where the missing part begins. */
function markerKind(
  counter: TokenCounter,
  text: string,
  tokensMax: number,
  facts: CutFacts,
): (offset: number) => string {
  const about = text.length > COUNTED_CHARS_MAX ? "about " : "";
  const images = facts.images === 0 ? "" : `; ${facts.images} images or other binary parts kept`;
  const size = `${about}${facts.tokens} tokens, ${text.length} characters`;
  const kinds = [
    (offset: number) =>
      `\n\n[… cut to ${tokensMax} of ${size}${images}; ${READ_RESULT} gives the rest: ${
        placeOf(facts.blob, offset)
      } …]\n\n`,
    (offset: number) => `\n[… cut; ${READ_RESULT} ${placeOf(facts.blob, offset)} …]\n`,
    () => `\n[… cut from ${facts.tokens} tokens …]\n`,
  ];
  const fitting = kinds.find((kind) => counter.count(kind(text.length)) <= tokensMax / 2);
  if (fitting !== undefined) return fitting;
  const sign = ["[…cut…]", "…"].find((marker) => counter.count(marker) <= tokensMax) ?? "";
  return () => sign;
}
