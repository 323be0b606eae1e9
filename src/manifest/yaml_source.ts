/**
 * YAML text as plain values that still know where they stand.
 *
 * Syntax mistakes, duplicate keys, unknown tags and alias bombs are mistakes with a place; nothing thrown by the parser gets out. Only this file and `yaml_edit.ts` know the YAML library.
 */
import type { Alias, CST, Document, Node, YAMLParseError, YAMLWarning } from "yaml";
import {
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  Parser,
  visit,
} from "yaml";
import { JSON_DEPTH_MAX } from "../base/json.ts";
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
  /** Place of the value at a path, if there is one. */
  placeOf(path: KeyPath): Position | undefined;
  /** The same for a piece of its text, as far as that is written there as it is. */
  pieceOf(path: KeyPath, piece: string): Position | undefined;
}

const TOO_DEEP = "Nested too deeply to be read";
const ALIASES_MULTIPLY = "Aliases multiply beyond what is reasonable; write the values out";
/** Aliases resolved times the nodes they stand for; over this it is an attack. */
const ALIAS_COUNT_MAX = 100;
/** Aliases in a file, for each of which the whole of it may be searched. */
const ALIASES_MAX = 1000;

type Place = (offset: number) => Position;

/** Parses one document. Never throws. After a syntax mistake only the first one is told: the others follow from it. */
export function readYaml(text: string): YamlSource {
  const tooDeep = tooDeepAt(text);
  if (tooDeep !== undefined) return nothing({ position: tooDeep, message: TOO_DEEP });
  const lines = new LineCounter();
  // Duplicate keys are looked for below: the library's own search takes the square of their number.
  const options = { lineCounter: lines, prettyErrors: false, uniqueKeys: false };
  return fromDocument(parseDocument(text, options), text, placeIn(lines));
}

function placeIn(lines: LineCounter): Place {
  return (offset) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
}

/** Where lists and mappings are in more than `JSON_DEPTH_MAX` others. The library's composer recurses: by itself it would end where the stack happens to. */
function tooDeepAt(text: string): Position | undefined {
  const lines = new LineCounter();
  const left: { token: CST.Token; depth: number }[] = [];
  for (const token of new Parser(lines.addNewLine).parse(text)) left.push({ token, depth: 0 });
  let deepest: number | undefined;
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { token, depth } = next;
    if (token.type === "document") {
      if (token.value !== undefined) left.push({ token: token.value, depth });
      continue;
    }
    if (!("items" in token)) continue;
    if (depth >= JSON_DEPTH_MAX) {
      deepest = Math.min(deepest ?? token.offset, token.offset);
      continue;
    }
    for (const { key, value } of token.items) {
      if (key) left.push({ token: key, depth: depth + 1 });
      if (value) left.push({ token: value, depth: depth + 1 });
    }
  }
  return deepest === undefined ? undefined : placeIn(lines)(deepest);
}

function fromDocument(document: Document, text: string, place: Place): YamlSource {
  const syntax = document.errors[0];
  if (syntax !== undefined) {
    return nothing({ position: place(syntax.pos[0]), message: syntaxMessage(syntax) });
  }
  const { mistakes, unreadable, firstAlias } = survey(document, place);
  for (const warning of document.warnings) {
    mistakes.push({ position: place(warning.pos[0]), message: syntaxMessage(warning) });
  }
  let value: unknown;
  try {
    value = unreadable ? undefined : document.toJS({ maxAliasCount: ALIAS_COUNT_MAX });
  } catch (thrown) {
    if (!(thrown instanceof ReferenceError)) throw thrown;
    mistakes.push({ position: place(offsetOf(firstAlias) ?? 0), message: aliasMessage(thrown) });
  }
  return {
    value,
    mistakes,
    valueAt: (path) => place(offsetOf(walk(document, path)) ?? 0),
    keyAt: (path) => place(keyOffset(document, path) ?? 0),
    placeOf(path) {
      const start = offsetOf(nodeAt(document, path));
      return start === undefined ? undefined : place(start);
    },
    pieceOf(path, piece) {
      const [start, end = start] = nodeAt(document, path)?.range ?? [];
      if (start === undefined) return undefined;
      const at = text.slice(0, end).indexOf(piece, start);
      return place(at === -1 ? start : at);
    },
  };
}

function nothing(mistake: YamlMistake): YamlSource {
  return {
    value: undefined,
    mistakes: [mistake],
    valueAt: () => FILE_START,
    keyAt: () => FILE_START,
    placeOf: () => undefined,
    pieceOf: () => undefined,
  };
}

function aliasMessage(thrown: ReferenceError): string {
  return thrown.message.startsWith("Excessive alias")
    ? ALIASES_MULTIPLY
    : "Aliases can't be resolved; write the values out";
}

interface Survey {
  mistakes: YamlMistake[];
  /** Whether the values can't be made of what was found. */
  unreadable: boolean;
  firstAlias: Alias | undefined;
}

/** Looks at all keys and aliases once: duplicates, keys that aren't text, too many aliases. */
function survey(document: Document, place: Place): Survey {
  const found: Survey = { mistakes: [], unreadable: false, firstAlias: undefined };
  const add = (node: unknown, message: string) =>
    found.mistakes.push({ position: place(isNode(node) ? offsetOf(node) ?? 0 : 0), message });
  let aliases = 0;
  visit(document, {
    Alias(_key, alias) {
      found.firstAlias ??= alias;
      aliases += 1;
    },
    Map(_key, map) {
      const seen = new Map<string, number>();
      for (const { key } of map.items) {
        if (!isScalar(key)) {
          found.unreadable = true;
          add(key, "A key must be plain text");
          continue;
        }
        const name = String(key.value);
        const line = seen.get(name);
        if (line === undefined) seen.set(name, place(offsetOf(key) ?? 0).line);
        else add(key, `Duplicate key "${name}": line ${line} has it already`);
      }
    },
  });
  if (aliases > ALIASES_MAX) {
    found.unreadable = true;
    add(found.firstAlias, ALIASES_MULTIPLY);
  }
  return found;
}

function syntaxMessage(found: YAMLParseError | YAMLWarning): string {
  if (found.code === "MULTIPLE_DOCS") return "Only one document a file; take out the --- line";
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
    const next = below(document, node, key);
    if (next === undefined) break;
    node = next;
  }
  return node;
}

/** The node at a path, if there is one. */
function nodeAt(document: Document, path: KeyPath): Node | undefined {
  return path.reduce<Node | undefined>(
    (node, key) => below(document, node, key),
    resolved(document, document.contents),
  );
}

function below(document: Document, node: Node | undefined, key: PropertyKey): Node | undefined {
  if (!isCollection(node)) return undefined;
  return resolved(document, isMap(node) ? pairOf(node, key)?.value : node.get(key, true));
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
