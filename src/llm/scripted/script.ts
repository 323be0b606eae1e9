/**
 * A scripted model's script: its form, and reading it with all mistakes at once.
 *
 * ```yaml
 * stream: { size: 12, every: 20ms }   # optional, for all turns: code points per piece, pause before each piece
 * turns:
 *   - text: Let me look.              # one turn = one reply of the model
 *     delay: 500ms                    # before the reply
 *     calls:                          # any number, all in this one reply
 *       - { tool: read_file, input: { path: "${{ intent }}" } }
 *       - tool: mcp__fs__list_directory   # whole name, or what stands after a `__` in exactly one tool's name
 *         input: { path: . }
 *   - id: ask                         # a name for references
 *     repeat: 3                       # this turn three times: `index` 0, 1, 2
 *     calls: [{ tool: echo, input: { message: "no. ${{ index }}" } }]
 *   - repeat: 2                       # a group: its turns one after another, twice
 *     turns:
 *       - calls: [{ tool: write_file, input: { path: "${{ index }}.txt", content: hi } }]
 *       - calls: [{ tool: read_file, input: { path: "${{ index }}.txt" } }]
 *   - text: "Read: ${{ results.t1.0.text }}"   # text and no calls: the answer that ends the run
 * final: Nothing more to do.          # optional: the answer to every request after the last turn
 * summary: Looked, and read.          # optional: the answer to a request for a summary of the conversation; empty: none
 * ```
 * A turn without calls answers the user; turns after it serve the next intent. For tests, a call may have `arguments: TEXT` in place of `input` (the argument text as a provider would send it, valid JSON or not), and `offered: false` to name a tool that isn't there.
 * References are described in `reference.ts`. Durations are written `500ms`, `2s`, `1m30s`.
 */
import type { Json } from "../../base/json.ts";
import { findReferences } from "./reference.ts";
import { type ScriptNode, ScriptReader } from "./script_reader.ts";

/** Pieces a reply's text is streamed in. */
export interface Streaming {
  /** Code points per piece. */
  size: number;
  /** Pause before each piece. */
  everyMs: number;
}

export interface ScriptedCall {
  tool: string;
  /** Template: strings in it may hold references. */
  input: Json;
  /** Argument text in place of `input`. */
  argumentText?: string;
  /** False: the name goes out as written, whether there is such a tool or not. */
  offered: boolean;
  /** Where it stands in the script: `line:column`. */
  at: string;
}

export interface ScriptedTurn {
  id?: string;
  text: string;
  delayMs: number;
  calls: ScriptedCall[];
  stream?: Streaming;
  /** Where it stands in the script: `line:column`; absent for `final`. */
  at?: string;
}

/** Turns that follow one another, `repeat` times. */
export interface Span {
  turns: ScriptedTurn[];
  repeat: number;
}

export interface Script {
  /** As shown in messages: the file it came from. */
  name: string;
  spans: Span[];
  final?: string;
  /** Absent: words that say nothing. */
  summary?: string;
  stream?: Streaming;
}

/** Highest `repeat`. */
export const REPEAT_MAX = 1_000_000;

const SCRIPT_KEYS = ["turns", "final", "stream", "summary"];
const TURN_KEYS = ["id", "text", "delay", "calls", "repeat", "stream"];
const GROUP_KEYS = ["repeat", "turns"];
const CALL_KEYS = ["tool", "input", "arguments", "offered"];
const STREAM_KEYS = ["size", "every"];
const ID = /^(?!t\d+$|last$)[a-z][a-z0-9_-]*$/;

/** A reader that remembers where turns are named, for the check at the end. */
class TurnReader extends ScriptReader {
  readonly ids: { id: string; at: ScriptNode }[] = [];
  readonly uses: { id: string; source: string; at: ScriptNode }[] = [];
}

/** Reads a script. Throws one INVALID `SysError` that lists all mistakes as `name:line:column`. */
export function parseScript(name: string, text: string): Script {
  const reader = new TurnReader(name, text);
  const script: Script = { name, spans: [] };
  const root = reader.root;
  if (root !== undefined && reader.map(root, "a script", SCRIPT_KEYS)) {
    const stream = readStream(reader, root);
    if (stream !== undefined) script.stream = stream;
    const final = readTemplate(reader, root, "final");
    if (final !== undefined) script.final = final;
    const summary = reader.string(root, "summary");
    if (summary !== undefined) script.summary = summary;
    const turns = root.get("turns");
    if (turns === undefined) reader.problem(root, 'Missing key "turns": a list of replies');
    else script.spans = reader.list(turns, "turns").map((node) => readSpan(reader, node));
    if (turns !== undefined && script.spans.length === 0 && reader.problems === 0) {
      reader.problem(turns, '"turns" is empty: name at least one reply');
    }
    checkIds(reader);
  }
  reader.throwIfAny();
  return script;
}

function readSpan(reader: TurnReader, node: ScriptNode): Span {
  const isGroup = node.get("turns") !== undefined;
  if (
    !reader.map(node, isGroup ? "a group of turns" : "a turn", isGroup ? GROUP_KEYS : TURN_KEYS)
  ) {
    return { turns: [], repeat: 0 };
  }
  const repeat = readWhole(reader, node, "repeat", REPEAT_MAX) ?? 1;
  if (!isGroup) return { turns: [readTurn(reader, node)], repeat };
  const inner = reader.list(node.get("turns"), "turns");
  const turns = inner.filter((turn) =>
    reader.map(turn, "a turn in a group", TURN_KEYS.filter((key) => key !== "repeat"))
  );
  if (inner.length === 0 && node.get("turns") !== undefined) {
    reader.problem(node, "A group needs at least one turn");
  }
  return { turns: turns.map((turn) => readTurn(reader, turn)), repeat };
}

function readTurn(reader: TurnReader, node: ScriptNode): ScriptedTurn {
  const calls = node.get("calls");
  const turn: ScriptedTurn = {
    text: readTemplate(reader, node, "text") ?? "",
    delayMs: reader.duration(node, "delay") ?? 0,
    at: reader.placeOf(node),
    calls: calls === undefined
      ? []
      : reader.list(calls, "calls").map((call) => readCall(reader, call)),
  };
  if (turn.text === "" && turn.calls.length === 0 && node.get("text") === undefined) {
    reader.problem(node, 'A turn needs "text", "calls" or both');
  }
  const id = reader.string(node, "id");
  if (id !== undefined) {
    turn.id = id;
    reader.ids.push({ id, at: node.get("id") ?? node });
    if (!ID.test(id)) {
      reader.problem(
        node.get("id") ?? node,
        `Turn id "${id}" must match [a-z][a-z0-9_-]* and be neither "last" nor like "t1"`,
      );
    }
  }
  const stream = readStream(reader, node);
  if (stream !== undefined) turn.stream = stream;
  return turn;
}

function readCall(reader: TurnReader, node: ScriptNode): ScriptedCall {
  const call: ScriptedCall = { tool: "", input: {}, offered: true, at: reader.placeOf(node) };
  if (!reader.map(node, "a call", CALL_KEYS)) return call;
  const tool = reader.string(node, "tool");
  if (tool === undefined || tool === "") reader.problem(node, 'A call needs a "tool"');
  else call.tool = tool;
  const input = node.get("input");
  if (input !== undefined) call.input = checkTemplates(reader, input, input.json);
  const argumentText = reader.string(node, "arguments");
  if (argumentText !== undefined) {
    call.argumentText = argumentText;
    if (input !== undefined) reader.problem(node, 'Give either "input" or "arguments", not both');
  }
  call.offered = reader.boolean(node, "offered") ?? true;
  return call;
}

function readStream(reader: TurnReader, node: ScriptNode): Streaming | undefined {
  const stream = node.get("stream");
  if (stream === undefined || !reader.map(stream, '"stream"', STREAM_KEYS)) return undefined;
  const size = readWhole(reader, stream, "size", 1_000_000);
  if (size === undefined) reader.problem(stream, '"stream" needs a "size": code points per piece');
  return { size: size ?? 1, everyMs: reader.duration(stream, "every") ?? 0 };
}

function readWhole(
  reader: TurnReader,
  node: ScriptNode,
  key: string,
  most: number,
): number | undefined {
  const value = node.get(key);
  if (value === undefined) return undefined;
  const number = value.json;
  if (typeof number === "number" && Number.isInteger(number) && number >= 1 && number <= most) {
    return number;
  }
  reader.problem(
    value,
    `"${key}" must be a whole number from 1 to ${most}, not ${JSON.stringify(number)}`,
  );
  return undefined;
}

function readTemplate(reader: TurnReader, node: ScriptNode, key: string): string | undefined {
  const text = reader.string(node, key);
  if (text !== undefined) checkTemplates(reader, node.get(key) ?? node, text);
  return text;
}

/** Reports references that can't be read; gives the value back. */
function checkTemplates(reader: TurnReader, at: ScriptNode, value: Json): Json {
  for (const found of findReferences(value)) {
    if ("message" in found) reader.problem(at, found.message);
    else if (found.kind === "result" && typeof found.turn === "string" && found.turn !== "last") {
      reader.uses.push({ id: found.turn, source: found.source, at });
    }
  }
  return value;
}

/** Ids are unique, and a named turn that is referred to exists. */
function checkIds(reader: TurnReader): void {
  const known = new Set<string>();
  for (const { id, at } of reader.ids) {
    if (known.has(id)) reader.problem(at, `Turn id "${id}" is given twice`);
    known.add(id);
  }
  for (const { id, source, at } of reader.uses) {
    if (known.has(id)) continue;
    reader.problem(at, `\${{ ${source} }} refers to turn "${id}", but no turn has this id`);
  }
}
