/**
 * The value of an expression, and texts with expressions filled in.
 *
 * What comes out of a node is data: it is put in as it is, and nothing in it is ever read as an expression. Values that are no text are put in as JSON; null is put in as nothing.
 */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { type Comparison, type Expression, shownPath } from "./expression.ts";
import type { TextPart } from "./expression_text.ts";

/** Longest text that may come out of one with expressions, UTF-16 units. */
export const TEXT_CHARS_MAX = 1_000_000;

/** Why an expression has no value. */
export class EvaluationError extends Error {}

/** Names that expressions may begin with, and their values. */
export type Scope = JsonObject;

/** The value of an expression. `lenient`: what isn't there is null. Throws EvaluationError. */
export function evaluate(expression: Expression, scope: Scope, lenient = false): Json {
  switch (expression.kind) {
    case "literal":
      return expression.value;
    case "reference":
      return valueAt(expression.path, scope, lenient);
    case "not":
      return !isTrue(evaluate(expression.of, scope, lenient));
    case "and":
    case "or": {
      const left = evaluate(expression.left, scope, lenient);
      const isDecided = isTrue(left) === (expression.kind === "or");
      return isDecided ? left : evaluate(expression.right, scope, lenient);
    }
    case "compare": {
      const left = evaluate(expression.left, scope, lenient);
      return compare(expression.operator, left, evaluate(expression.right, scope, lenient));
    }
  }
}

/** Everything but false, null, 0, the empty text and what holds nothing. */
export function isTrue(value: Json): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** A text with its expressions filled in. Throws EvaluationError, also for a text that gets too long. */
export function fillIn(parts: readonly TextPart[], scope: Scope): string {
  let text = "";
  for (const part of parts) {
    text += typeof part === "string" ? part : shown(evaluate(part.expression, scope));
    if (text.length > TEXT_CHARS_MAX) {
      throw new EvaluationError(
        `The text gets longer than ${TEXT_CHARS_MAX} characters with its values filled in`,
      );
    }
  }
  return text;
}

function shown(value: Json): string {
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function valueAt(path: readonly (string | number)[], scope: Scope, lenient: boolean): Json {
  let value: Json = scope;
  for (const [index, part] of path.entries()) {
    const inner = memberOf(value, part);
    if (inner !== undefined) {
      value = inner;
      continue;
    }
    // A node that was skipped has nothing, and nothing of nothing is nothing.
    if (lenient || (value === null && path[0] === "nodes")) return null;
    throw new EvaluationError(
      `${shownPath(path.slice(0, index + 1))} isn't there: ${shownPath(path.slice(0, index))} is ${
        described(value)
      }`,
    );
  }
  return value;
}

function memberOf(value: Json, part: string | number): Json | undefined {
  if (Array.isArray(value)) {
    return typeof part === "number" || /^\d{1,9}$/.test(part) ? value[Number(part)] : undefined;
  }
  if (!isJsonObject(value) || typeof part === "number") return undefined;
  return Object.hasOwn(value, part) ? value[part] : undefined;
}

const NAMES_TOLD = 10;

function described(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== "object") return typeof value === "string" ? "a text" : String(value);
  const names = Object.keys(value);
  if (names.length === 0) return "an empty mapping";
  const more = names.length > NAMES_TOLD ? " and others" : "";
  return `a mapping with ${names.slice(0, NAMES_TOLD).join(", ")}${more}`;
}

function compare(operator: Comparison, left: Json, right: Json): boolean {
  if (operator === "==" || operator === "!=") {
    return (canonicalJson(left) === canonicalJson(right)) === (operator === "==");
  }
  if (operator === "in") return isIn(left, right);
  const [less, equal] = ordered(operator, left, right);
  if (operator === "<") return less;
  if (operator === "<=") return less || equal;
  return operator === ">" ? !less && !equal : !less;
}

function ordered(operator: Comparison, left: Json, right: Json): [less: boolean, equal: boolean] {
  if (typeof left === "number" && typeof right === "number") return [left < right, left === right];
  if (typeof left === "string" && typeof right === "string") return [left < right, left === right];
  throw new EvaluationError(
    `"${operator}" compares two numbers or two texts, not ${described(left)} and ${
      described(right)
    }`,
  );
}

function isIn(left: Json, right: Json): boolean {
  if (Array.isArray(right)) {
    const wanted = canonicalJson(left);
    return right.some((item) => canonicalJson(item) === wanted);
  }
  if (right === null) return false;
  if (typeof left === "string" && typeof right === "string") return right.includes(left);
  if (typeof left === "string" && isJsonObject(right)) return Object.hasOwn(right, left);
  throw new EvaluationError(
    `"in" looks in a list, a text or a mapping, not in ${described(right)}`,
  );
}
