/**
 * YAML text as plain values that still know where they stand.
 *
 * Syntax mistakes, duplicate keys, unknown tags and alias bombs are mistakes with a place; nothing thrown by the parser gets out. Only this file knows the YAML library.
 */
import type { Alias, Document, Node, YAMLParseError, YAMLWarning } from "yaml";
import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
} from "yaml";
import { FILE_START, type KeyPath, type Position } from "./problems.ts";

/** A mistake of the YAML itself. */
export interface YamlMistake {
  position: Position;
  message: string;
}

/** Parsed text. `value` is undefined when the mistakes leave nothing to look at. */
export interface YamlSource {
  value: unknown;
  mistakes: YamlMistake[];
  /** Place of the value at a path, or of the nearest part of the path that exists. */
  valueAt(path: KeyPath): Position;
  /** Place of the key that ends a path. */
  keyAt(path: KeyPath): Position;
}

const TOO_DEEP = "Nested too deeply to be read";
/** Aliases resolved times the nodes they stand for; over this it is an attack. */
const ALIAS_COUNT_MAX = 100;

/** Parses one document. Never throws. After a syntax mistake only the first one is told: the others follow from it. */
export function readYaml(text: string): YamlSource {
  const lines = new LineCounter();
  const place = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  let document: Document;
  try {
    document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  } catch {
    return nothing({ position: FILE_START, message: TOO_DEEP });
  }
  const syntax = document.errors.filter((found) => found.code !== "DUPLICATE_KEY");
  const told = syntax.length > 0 ? syntax.slice(0, 1) : [...document.errors, ...document.warnings];
  const mistakes = told.map((found): YamlMistake => ({
    position: place(found.pos[0]),
    message: found.code === "DUPLICATE_KEY"
      ? `Duplicate key ${keyText(text, found.pos[0])}: keep one of them`
      : syntaxMessage(found),
  }));
  const keys = syntax.length > 0 ? [] : collectionKeys(document);
  for (const key of keys) {
    mistakes.push({ position: place(offsetOf(key) ?? 0), message: "A key must be plain text" });
  }
  const readable = syntax.length === 0 && keys.length === 0;
  let value: unknown;
  try {
    value = readable ? document.toJS({ maxAliasCount: ALIAS_COUNT_MAX }) : undefined;
  } catch (thrown) {
    mistakes.push({ position: firstAlias(document, place), message: aliasMessage(thrown) });
  }
  return {
    value,
    mistakes,
    valueAt: (path) => place(offsetOf(walk(document, path)) ?? 0),
    keyAt: (path) => place(keyOffset(document, path) ?? 0),
  };
}

function nothing(mistake: YamlMistake): YamlSource {
  return {
    value: undefined,
    mistakes: [mistake],
    valueAt: () => FILE_START,
    keyAt: () => FILE_START,
  };
}

function aliasMessage(thrown: unknown): string {
  return thrown instanceof ReferenceError && thrown.message.startsWith("Excessive alias")
    ? "Aliases multiply beyond what is reasonable; write the values out"
    : "Aliases can't be resolved; write the values out";
}

/** Keys that are lists or mappings themselves, which YAML allows and nothing here means. */
function collectionKeys(document: Document): Node[] {
  const found: Node[] = [];
  visit(document, {
    Pair(_key, pair) {
      const key = resolved(document, pair.key);
      if (isCollection(key)) found.push(key);
    },
  });
  return found;
}

function firstAlias(document: Document, place: (offset: number) => Position): Position {
  let found: Alias | undefined;
  visit(document, {
    Alias(_key, alias) {
      found = alias;
      return visit.BREAK;
    },
  });
  return place(offsetOf(found) ?? 0);
}

/** The key that begins at an offset, quoted. */
function keyText(text: string, offset: number): string {
  const key = /^("[^"\n]*"|'[^'\n]*'|[^:\n]*)/.exec(text.slice(offset))?.[0].trim() ?? "";
  return /^["']/.test(key) ? key : `"${key}"`;
}

function syntaxMessage(found: YAMLParseError | YAMLWarning): string {
  if (found.code === "MULTIPLE_DOCS") return "Only one document a file; take out the --- line";
  if (found.message.startsWith("Maximum call stack")) return TOO_DEEP;
  const first = found.message.split("\n")[0] ?? "";
  return `Invalid YAML: ${first.replace(/[.:]$/, "")}`;
}

function resolved(document: Document, node: unknown): Node | undefined {
  if (isAlias(node)) return node.resolve(document);
  return isNode(node) ? node : undefined;
}

/** The node at a path, or the last one on the way. */
function walk(document: Document, path: KeyPath): Node | undefined {
  let node = resolved(document, document.contents);
  for (const key of path) {
    if (!isCollection(node)) break;
    const next = resolved(document, isMap(node) ? pairOf(node, key)?.value : node.get(key, true));
    if (next === undefined) break;
    node = next;
  }
  return node;
}

function pairOf(node: Node, key: PropertyKey) {
  if (!isMap(node)) return undefined;
  return node.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(key));
}

function keyOffset(document: Document, path: KeyPath): number | undefined {
  const parent = walk(document, path.slice(0, -1));
  const last = path.at(-1);
  if (parent === undefined || last === undefined) return offsetOf(parent);
  const key = pairOf(parent, last)?.key;
  return isNode(key) ? offsetOf(key) : offsetOf(walk(document, path));
}

function offsetOf(node: Node | undefined): number | undefined {
  return node?.range?.[0];
}
