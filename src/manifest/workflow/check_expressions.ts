/** Mistakes in the expressions of a workflow: what can't be read, and what names something that isn't there or isn't known yet. */
import { nearest } from "../../base/nearest.ts";
import type { KeyPath } from "../problems.ts";
import { upstreamOf } from "./check_graph.ts";
import { type Draft, type DraftNode, type DraftText, membersOf } from "./draft.ts";
import { type Reference, referencesOf, shownPath } from "./expression.ts";
import { parseLone, parseText } from "./expression_text.ts";
import { isMapping } from "../not_built.ts";

/** Takes a mistake at so many characters from the beginning of a text. */
export type TextFault = (path: KeyPath, text: string, at: number, message: string) => void;

/** Names that expressions may begin with everywhere. */
export const ROOTS = ["nodes", "params", "intent"] as const;
const MEMBERS = ["result", "output", "status"] as const;

interface Place {
  draft: Draft;
  /** Nodes whose results are known there. */
  known: ReadonlySet<string>;
  /** The node that it is in; undefined in the result of the whole. */
  node: DraftNode | undefined;
  item: string | undefined;
}

/** All mistakes of all expressions. */
export function checkExpressions(draft: Draft, fault: TextFault): void {
  const upstream = upstreamOf(
    draft.nodes.map(({ name, after }) => ({ name, after: after.map((each) => each.name) })),
  );
  for (const node of draft.nodes) {
    const known = upstream.get(node.name) ?? new Set();
    for (const text of [...node.texts, ...node.when === undefined ? [] : [node.when]]) {
      const item = text.hasItem ? node.as : undefined;
      checkText(text, { draft, known, node, item }, fault);
    }
  }
  const known = new Set(draft.nodes.map(({ name }) => name));
  if (draft.result !== undefined) {
    checkText(draft.result, { draft, known, node: undefined, item: undefined }, fault);
  }
}

function checkText({ text, path, kind }: DraftText, place: Place, fault: TextFault): void {
  const { references, faults } = kind === "lone" ? readLone(text) : readText(text);
  for (const { at, message } of faults) fault(path, text, at, message);
  for (const { reference, at } of references) {
    const message = faultOf(reference, place);
    if (message !== undefined) fault(path, text, at, message);
  }
}

interface Read {
  references: { reference: Reference; at: number }[];
  faults: { at: number; message: string }[];
}

function readLone(text: string): Read {
  const parsed = parseLone(text);
  if ("fault" in parsed) return { references: [], faults: [parsed.fault] };
  const { expression, offset } = parsed;
  return { references: placed(referencesOf(expression), offset), faults: [] };
}

function readText(text: string): Read {
  const { parts, faults, offsets } = parseText(text);
  const expressions = parts.flatMap((part) => typeof part === "string" ? [] : [part.expression]);
  const references = expressions.flatMap((expression, index) =>
    placed(referencesOf(expression), offsets[index] ?? 0)
  );
  return { references, faults };
}

function placed(references: readonly Reference[], offset: number) {
  return references.map((reference) => ({ reference, at: offset + reference.at }));
}

function faultOf(reference: Reference, place: Place): string | undefined {
  const [root] = reference.path;
  if (root === "nodes") return nodeFault(reference, place);
  if (root === "params") return parameterFault(reference, place);
  if (root === "intent") {
    return reference.path.length === 1 ? undefined : "`intent` is a text: nothing is in it";
  }
  if (root === place.item) return undefined;
  if (place.item === undefined && root === place.node?.as && place.node.isForEach) {
    return `\`${root}\` is known only in the intent of the node, not here`;
  }
  const known = [...ROOTS, ...place.item === undefined ? [] : [place.item]];
  return `Nothing is called \`${root}\` here${suggestion(root, known)}`;
}

/** The nearest name, else those that there are. */
function suggestion(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  if (near !== undefined) return `; did you mean \`${near}\`?`;
  return known.length === 0 ? "; there are none" : `; known here: ${known.join(", ")}`;
}

function parameterFault({ path }: Reference, { draft }: Place): string | undefined {
  const [, name, ...rest] = path;
  if (typeof name !== "string") return "Which parameter? Write `params.NAME`";
  if (!draft.parameters.includes(name)) {
    return `No parameter "${name}"${suggestion(name, draft.parameters)}`;
  }
  return rest.length === 0 ? undefined : `Parameter "${name}" is one value: nothing is in it`;
}

function nodeFault({ path }: Reference, place: Place): string | undefined {
  const [, name, member, ...rest] = path;
  const { draft, known, node } = place;
  if (typeof name !== "string") return "Which node? Write `nodes.NAME.result`";
  const target = draft.nodes.find((each) => each.name === name);
  if (target === undefined) {
    return `No node "${name}"${suggestion(name, draft.nodes.map((each) => each.name))}`;
  }
  if (name === node?.name) return `Node "${name}" can't know its own result`;
  if (!known.has(name)) {
    return `Node "${name}" need not be over by then: add it to depends_on of "${node?.name}"`;
  }
  if (member === undefined) return `What of it? Write \`${shownPath(path)}.result\``;
  if (typeof member !== "string" || !MEMBERS.some((each) => each === member)) {
    return `A node has no "${member}"${suggestion(String(member), MEMBERS)}`;
  }
  if (member === "output") return outputFault(target, rest);
  const isList = member === "result" && target.isForEach;
  if (rest.length === 0 || isList) return undefined;
  return `\`${shownPath(path.slice(0, 3))}\` is a text: nothing is in it` +
    (member === "result" ? "; parts can be had of a node with output:, by `.output`" : "");
}

function outputFault(target: DraftNode, rest: readonly (string | number)[]): string | undefined {
  const { name, output, isForEach } = target;
  if (output === undefined) {
    return `Node "${name}" has no output: give it a schema (output:), or use \`nodes.${name}.result\``;
  }
  let schema: unknown = output;
  for (const [index, part] of rest.entries()) {
    if (isForEach && index === 0) continue;
    if (typeof part === "number") {
      schema = isMapping(schema) ? schema["items"] : undefined;
      continue;
    }
    if (!isMapping(schema)) return undefined;
    const members = membersOf(schema);
    if (members !== undefined && !members.includes(part)) {
      return `The output of "${name}" has no "${part}"${suggestion(part, members)}`;
    }
    schema = isMapping(schema["properties"]) ? schema["properties"][part] : undefined;
  }
  return undefined;
}
