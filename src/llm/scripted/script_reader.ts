/**
 * YAML nodes of a script as typed values, with every mistake noted at its line and column.
 *
 * The folders of the leaves don't import each other, and base holds no library: this folder and the manifest's each use the YAML library directly. They want different things of it: here nodes are decoded one by one, there whole values are checked against a schema.
 */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
} from "yaml";
import { DURATION_EXAMPLES, parseDuration } from "../../base/duration.ts";
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import type { Json } from "../../base/json.ts";
import { nearest } from "../../base/nearest.ts";

const ALIAS_COUNT_MAX = 100;

/** One node, its alias resolved, and the way to those below it. */
export class ScriptNode {
  readonly node: Node;
  readonly #document: Document;

  constructor(node: Node, document: Document) {
    this.node = (isAlias(node) ? node.resolve(document) : undefined) ?? node;
    this.#document = document;
  }

  /** Member of a mapping; undefined if there is none. */
  get(key: string): ScriptNode | undefined {
    return this.child(isMap(this.node) ? this.node.get(key, true) : undefined);
  }

  /** A node below this one. */
  child(node: unknown): ScriptNode | undefined {
    return isNode(node) ? new ScriptNode(node, this.#document) : undefined;
  }

  /** The value as JSON. */
  get json(): Json {
    const value = this.node.toJS(this.#document, { maxAliasCount: ALIAS_COUNT_MAX });
    return JSON.parse(JSON.stringify(value ?? null));
  }
}

export class ScriptReader {
  /** The document's top node; undefined for an empty or unreadable text, which is noted. */
  readonly root: ScriptNode | undefined;
  readonly #name: string;
  readonly #lines = new LineCounter();
  readonly #found: { offset: number; message: string }[] = [];

  constructor(name: string, text: string) {
    this.#name = name;
    try {
      const document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
      for (const error of [...document.errors, ...document.warnings]) {
        this.#found.push({ offset: error.pos[0], message: error.message.split("\n")[0] ?? "" });
      }
      if (isNode(document.contents)) this.root = new ScriptNode(document.contents, document);
      else this.problem(undefined, "The script is empty");
      // Resolves all aliases once, within the library's limit, before anything looks at them.
      document.toJS({ maxAliasCount: ALIAS_COUNT_MAX });
    } catch (thrown) {
      // Too many aliases or too deep a nesting; anything else is no mistake of the script.
      if (!(thrown instanceof ReferenceError || thrown instanceof RangeError)) throw thrown;
      this.root = undefined;
      this.problem(undefined, thrown.message);
    }
  }

  /** How many mistakes were noted. */
  get problems(): number {
    return this.#found.length;
  }

  /** Notes a mistake at a node; at the top without one. */
  problem(at: ScriptNode | undefined, message: string): void {
    this.#found.push({ offset: at?.node.range?.[0] ?? 0, message });
  }

  /** Whether the node is a mapping with none but the known keys; notes what isn't. */
  map(at: ScriptNode, what: string, known: readonly string[]): boolean {
    if (!isMap(at.node)) {
      this.problem(at, `Expected ${what}: a mapping with ${known.join(", ")}`);
      return false;
    }
    for (const pair of at.node.items) {
      const key = isScalar(pair.key) ? String(pair.key.value) : "";
      if (known.includes(key)) continue;
      const near = nearest(key, known);
      const hint = near === undefined ? `known are ${known.join(", ")}` : `did you mean "${near}"?`;
      this.problem(
        at.child(pair.key) ?? at,
        `Unknown key "${key}" in ${what}: ${hint}`,
      );
    }
    return true;
  }

  /** Items of a list; notes anything else and gives none. */
  list(at: ScriptNode | undefined, what: string): ScriptNode[] {
    if (at === undefined || !isSeq(at.node)) {
      this.problem(at, `"${what}" must be a list`);
      return [];
    }
    return at.node.items.map((item) => at.child(item)).filter((item) => item !== undefined);
  }

  /** A member that is a text; undefined if absent. */
  string(at: ScriptNode, key: string): string | undefined {
    return this.#member(at, key, "text", (value) => typeof value === "string" ? value : undefined);
  }

  boolean(at: ScriptNode, key: string): boolean | undefined {
    return this.#member(
      at,
      key,
      "true or false",
      (value) => typeof value === "boolean" ? value : undefined,
    );
  }

  /** A member that is a duration, in milliseconds. */
  duration(at: ScriptNode, key: string): number | undefined {
    return this.#member(
      at,
      key,
      `a duration such as ${DURATION_EXAMPLES}`,
      (value) => typeof value === "string" ? parseDuration(value) : undefined,
    );
  }

  #member<T>(
    at: ScriptNode,
    key: string,
    what: string,
    decode: (value: Json) => T | undefined,
  ): T | undefined {
    const node = at.get(key);
    if (node === undefined) return undefined;
    const value = node.json;
    const decoded = decode(value);
    if (decoded === undefined) {
      this.problem(node, `"${key}" must be ${what}, not ${JSON.stringify(value)}`);
    }
    return decoded;
  }

  /** Where a node stands: `line:column`. */
  placeOf(at: ScriptNode): string {
    return this.#place(at.node.range?.[0] ?? 0);
  }

  #place(offset: number): string {
    const { line, col } = this.#lines.linePos(offset);
    return `${Math.max(line, 1)}:${Math.max(col, 1)}`;
  }

  /** One INVALID error with all mistakes, in the order of the file; nothing without any. */
  throwIfAny(): void {
    if (this.#found.length === 0) return;
    const lines = this.#found.toSorted((a, b) => a.offset - b.offset).map(({ offset, message }) =>
      `${this.#name}:${this.#place(offset)}: ${message}`
    );
    const message = lines.length === 1
      ? lines.join("")
      : [`${lines.length} mistakes`, ...lines.map((line) => `  ${line}`)].join("\n");
    throw new SysError("INVALID", message, { exitCode: EXIT_USAGE });
  }
}
