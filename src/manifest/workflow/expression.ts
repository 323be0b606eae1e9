/**
 * Expressions of a workflow: what stands in `${{ }}` and in `when`, parsed by hand into a tree. Nothing is ever run as code.
 *
 * ```
 * nodes.review.output.files[0].path     a value; names may hold -
 * nodes.review.output.count > 3 and not params.quick
 * params.mode == "fast" or "urgent" in nodes.triage.output.labels
 * nodes.second-try.result or nodes.first-try.result
 * ```
 * Weakest first: or, and, not, then one comparison (== != < <= > >= in). As in Python `a or b` is b where a is nothing. Literals: texts in ' or ", numbers, true, false, null.
 */
import type { Json } from "../../base/json.ts";

/** Longest expression, UTF-16 units. */
export const EXPRESSION_CHARS_MAX = 2000;
/** Deepest nesting. */
const DEPTH_MAX = 32;

/** Signs between two values. */
export const COMPARISONS = ["==", "!=", "<=", ">=", "<", ">", "in"] as const;
/** One of them. */
export type Comparison = (typeof COMPARISONS)[number];

/** A value by its name. */
export interface Reference {
  kind: "reference";
  /** Names and positions, from the root on: never empty. */
  path: [string, ...(string | number)[]];
  /** Where it stands in the text, from 0. */
  at: number;
}

/** An expression as a tree. */
export type Expression =
  | { kind: "literal"; value: Json }
  | Reference
  | { kind: "not"; of: Expression }
  | { kind: "and" | "or"; left: Expression; right: Expression }
  | { kind: "compare"; operator: Comparison; left: Expression; right: Expression; at: number };

/** What is wrong with an expression, and where in its text, from 0. */
export interface ExpressionFault {
  at: number;
  message: string;
}

/** An expression, or what is wrong with it. */
export type Parsed = { expression: Expression } | { fault: ExpressionFault };

/** Parses one expression. Never throws. */
export function parseExpression(text: string): Parsed {
  if (text.length > EXPRESSION_CHARS_MAX) {
    const message = `An expression has at most ${EXPRESSION_CHARS_MAX} characters`;
    return { fault: { at: 0, message } };
  }
  try {
    const parser = new Parser(tokens(text), text.length);
    return { expression: parser.whole() };
  } catch (thrown) {
    if (thrown instanceof Fault) return { fault: { at: thrown.at, message: thrown.message } };
    throw thrown;
  }
}

/** All references of an expression, in the order of its text. */
export function referencesOf(expression: Expression): Reference[] {
  switch (expression.kind) {
    case "literal":
      return [];
    case "reference":
      return [expression];
    case "not":
      return referencesOf(expression.of);
    default:
      return [...referencesOf(expression.left), ...referencesOf(expression.right)];
  }
}

/** A reference as it is written. */
export function shownPath(path: readonly (string | number)[]): string {
  return path.map((part, index) => {
    if (typeof part === "number") return `[${part}]`;
    if (index === 0) return part;
    return /^[A-Za-z0-9_-]+$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`;
  }).join("");
}

class Fault extends Error {
  readonly at: number;

  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

interface Token {
  kind: "name" | "number" | "text" | "sign";
  text: string;
  at: number;
}

const TOKEN =
  /\s+|(?<name>[A-Za-z_][A-Za-z0-9_-]*)|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<sign>==|!=|<=|>=|[<>()[\].])/y;
/** After a dot a name may begin with a digit. */
const MEMBER = /[A-Za-z0-9_-]+/y;

/** What people write who know another language. */
const INSTEAD: readonly (readonly [string, string])[] = [
  ["&&", "and"],
  ["||", "or"],
  ["===", "=="],
  ["=", "=="],
  ["!", "not"],
];

function tokens(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const afterDot = found.at(-1)?.text === "." && found.at(-1)?.kind === "sign";
    const member = afterDot ? matchAt(MEMBER, text, at) : null;
    const match = member ?? matchAt(TOKEN, text, at);
    if (match === null) throw strange(text, at);
    const [kind] = member === null
      ? Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined) ?? []
      : ["name"];
    if (kind === "name" || kind === "number" || kind === "text" || kind === "sign") {
      found.push({ kind, text: match[0], at });
    }
    at += match[0].length;
  }
  return found;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function strange(text: string, at: number): Fault {
  const other = INSTEAD.find(([written]) => text.startsWith(written, at));
  if (other !== undefined) {
    return new Fault(at, `"${other[0]}" is not known here; write "${other[1]}"`);
  }
  if (/["']/.test(text[at] ?? "")) return new Fault(at, "A text without its closing quote");
  return new Fault(
    at,
    `${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 32))} is not known here`,
  );
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #end: number;
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], end: number) {
    this.#tokens = tokens;
    this.#end = end;
  }

  whole(): Expression {
    if (this.#tokens.length === 0) throw new Fault(0, "The expression is empty");
    const expression = this.#or();
    const rest = this.#peek();
    if (rest !== undefined) throw new Fault(rest.at, `"${rest.text}" is not expected here`);
    return expression;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  #take(kind: Token["kind"], text: string): Token | undefined {
    const token = this.#peek();
    if (token?.kind !== kind || token.text !== text) return undefined;
    this.#next += 1;
    return token;
  }

  #or(): Expression {
    if (++this.#depth > DEPTH_MAX) {
      throw new Fault(this.#peek()?.at ?? this.#end, "The expression is nested too deep");
    }
    let left = this.#and();
    while (this.#take("name", "or") !== undefined) left = { kind: "or", left, right: this.#and() };
    this.#depth -= 1;
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.#take("name", "and") !== undefined) {
      left = { kind: "and", left, right: this.#not() };
    }
    return left;
  }

  #not(): Expression {
    let count = 0;
    while (this.#take("name", "not") !== undefined) count += 1;
    let expression = this.#comparison();
    if (count > 0) expression = { kind: "not", of: expression };
    return count > 0 && count % 2 === 0 ? { kind: "not", of: expression } : expression;
  }

  #comparison(): Expression {
    const left = this.#operand();
    const token = this.#peek();
    const operator = COMPARISONS.find((known) => known === token?.text);
    if (token === undefined || operator === undefined || token.kind === "text") return left;
    this.#next += 1;
    const right = this.#operand();
    const more = this.#peek();
    if (more !== undefined && COMPARISONS.some((known) => known === more.text)) {
      throw new Fault(more.at, 'Only one comparison; join two with "and"');
    }
    return { kind: "compare", operator, left, right, at: token.at };
  }

  #operand(): Expression {
    const token = this.#peek();
    if (token === undefined) throw new Fault(this.#end, "A value is missing at the end");
    this.#next += 1;
    if (token.kind === "number") return { kind: "literal", value: Number(token.text) };
    if (token.kind === "text") return { kind: "literal", value: unquoted(token) };
    if (token.text === "(") {
      const inner = this.#or();
      if (this.#take("sign", ")") === undefined) {
        throw new Fault(this.#peek()?.at ?? this.#end, `The "(" before isn't closed`);
      }
      return inner;
    }
    if (token.kind === "sign" || ["and", "or", "not", "in"].includes(token.text)) {
      throw new Fault(token.at, `A value is missing before "${token.text}"`);
    }
    const literal = LITERALS.get(token.text);
    return literal === undefined ? this.#reference(token) : { kind: "literal", value: literal };
  }

  #reference(root: Token): Reference {
    const path: Reference["path"] = [root.text];
    for (;;) {
      const dot = this.#take("sign", ".");
      if (dot !== undefined) {
        const member = this.#peek();
        if (member?.kind !== "name") throw new Fault(dot.at, 'A name is missing after "."');
        this.#next += 1;
        path.push(member.text);
        continue;
      }
      const open = this.#take("sign", "[");
      if (open === undefined) return { kind: "reference", path, at: root.at };
      path.push(this.#position(open));
    }
  }

  #position(open: Token): string | number {
    const token = this.#peek();
    this.#next += 1;
    if (token === undefined || this.#take("sign", "]") === undefined) {
      throw new Fault(open.at, 'Expected a position or a text in quotes, then "]"');
    }
    if (token.kind === "text") return unquoted(token);
    if (token.kind === "number" && /^\d{1,9}$/.test(token.text)) return Number(token.text);
    throw new Fault(token.at, "Expected a position from 0 on, or a text in quotes");
  }
}

const LITERALS: ReadonlyMap<string, Json> = new Map<string, Json>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

function unquoted({ text }: Token): string {
  return text.slice(1, -1).replace(/\\(.)/g, (_, letter) => letter === "n" ? "\n" : letter);
}
