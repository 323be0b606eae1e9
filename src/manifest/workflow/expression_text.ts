/** Texts with `${{ }}` in them, split at their expressions. `$${{` stands for a plain `${{`. */
import { type Expression, type ExpressionFault, parseExpression } from "./expression.ts";

/** A piece of a text: plain, or an expression. */
export type TextPart = string | { expression: Expression };

/** A text split at its expressions. */
export interface ExpressionText {
  parts: TextPart[];
  /** With their places in the whole text, from 0. */
  faults: ExpressionFault[];
  /** Where each expression begins in the whole text, in the order of the parts. */
  offsets: number[];
}

/** Splits a text. Never throws. */
export function parseText(text: string): ExpressionText {
  const parts: TextPart[] = [];
  const faults: ExpressionFault[] = [];
  const offsets: number[] = [];
  let from = 0;
  for (;;) {
    const open = text.indexOf("${{", from);
    if (open === -1) break;
    if (text[open - 1] === "$" && open > from) {
      parts.push(`${text.slice(from, open - 1)}\${{`);
      from = open + 3;
      continue;
    }
    parts.push(text.slice(from, open));
    const close = endOf(text, open + 3);
    if (close === -1) {
      faults.push({ at: open, message: '"${{" without its "}}"; write "$${{" for the plain text' });
      from = text.length;
      break;
    }
    const parsed = parseExpression(text.slice(open + 3, close));
    if ("fault" in parsed) {
      faults.push({ at: open + 3 + parsed.fault.at, message: parsed.fault.message });
    } else {
      parts.push(parsed);
      offsets.push(open + 3);
    }
    from = close + 2;
  }
  parts.push(text.slice(from));
  return { parts: parts.filter((part) => part !== ""), faults, offsets };
}

/** Where the `}}` of an expression is: one in quotes doesn't count. */
function endOf(text: string, from: number): number {
  let quote: string | undefined;
  for (let at = from; at < text.length; at++) {
    const letter = text[at];
    if (quote !== undefined) {
      if (letter === "\\") at += 1;
      else if (letter === quote) quote = undefined;
    } else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === "}" && text[at + 1] === "}") return at;
  }
  return -1;
}

/** One expression that stands alone, with or without its `${{ }}`; `offset` is where it begins. */
export function parseLone(
  text: string,
): { expression: Expression; offset: number } | { fault: ExpressionFault } {
  const offset = loneOffset(text);
  const inner = offset === 0 ? text : text.slice(offset, text.lastIndexOf("}}"));
  const parsed = parseExpression(inner);
  if ("fault" in parsed) {
    return { fault: { at: offset + parsed.fault.at, message: parsed.fault.message } };
  }
  return { expression: parsed.expression, offset };
}

function loneOffset(text: string): number {
  const match = /^\s*\$\{\{/.exec(text);
  return match !== null && /\}\}\s*$/.test(text) ? match[0].length : 0;
}
