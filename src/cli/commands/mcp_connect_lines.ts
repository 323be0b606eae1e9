/** The little language of `mcp connect`: one command a line, each becomes one request to the server or is answered from what is known. */
import type { ServerAsk, ServerFacts } from "../../base/server_operations.ts";
import { nearest } from "../../base/nearest.ts";
import { usageError } from "../arguments.ts";
import { objectOf } from "./mcp_connect_flags.ts";

/** What a line asks for. */
export type Wish =
  | { kind: "ask"; ask: ServerAsk }
  /** A tool's definition, out of the listing. */
  | { kind: "tool"; name: string }
  | { kind: "info" }
  | { kind: "help" }
  | { kind: "quit" };

export interface LineCommand {
  name: string;
  /** What follows the name. */
  form: string;
  summary: string;
  read(rest: string, facts: ServerFacts): Wish;
}

const ask = (method: string, params: ServerAsk["params"] = {}): Wish => ({
  kind: "ask",
  ask: { method, params },
});

/** All of them, in the order of the help. */
export const LINE_COMMANDS: readonly LineCommand[] = [
  { name: "tools", form: "", summary: "List the tools", read: () => ask("tools/list") },
  {
    name: "tool",
    form: "NAME",
    summary: "Show a tool with its schemas",
    read: (rest) => ({ kind: "tool", name: only(rest, "tool NAME") }),
  },
  {
    name: "call",
    form: "TOOL [JSON]",
    summary: "Call a tool",
    read(rest) {
      const { name, object } = named(rest, "call TOOL [JSON]");
      return ask("tools/call", { name, arguments: object });
    },
  },
  { name: "resources", form: "", summary: "List the resources", read: () => ask("resources/list") },
  {
    name: "templates",
    form: "",
    summary: "List the templates of resources",
    read: () => ask("resources/templates/list"),
  },
  {
    name: "read",
    form: "URI",
    summary: "Read a resource",
    read: (rest) => ask("resources/read", { uri: only(rest, "read URI") }),
  },
  { name: "prompts", form: "", summary: "List the prompts", read: () => ask("prompts/list") },
  {
    name: "prompt",
    form: "NAME [JSON]",
    summary: "Get a prompt",
    read(rest) {
      const { name, object } = named(rest, "prompt NAME [JSON]");
      return ask("prompts/get", { name, arguments: object });
    },
  },
  {
    name: "ping",
    form: "",
    summary: "See whether the server answers",
    // There is no ping since 2026-07-28.
    read: (_, { era }) => ask(era === "modern" ? "server/discover" : "ping"),
  },
  {
    name: "info",
    form: "",
    summary: "Show what the server says of itself",
    read: () => ({ kind: "info" }),
  },
  { name: "help", form: "", summary: "List the commands", read: () => ({ kind: "help" }) },
  { name: "quit", form: "", summary: "Leave", read: () => ({ kind: "quit" }) },
];

/** The first word of a line. */
export function commandOf(line: string): string {
  return line.trim().split(/\s+/, 1)[0] ?? "";
}

/** Undefined for an empty line and for a comment (`#`). Throws a usage error. */
export function readLine(line: string, facts: ServerFacts): Wish | undefined {
  const text = line.trim();
  if (text === "" || text.startsWith("#")) return undefined;
  const name = commandOf(text);
  const command = LINE_COMMANDS.find((each) => each.name === name);
  if (command === undefined) {
    const close = nearest(name, LINE_COMMANDS.map((each) => each.name));
    throw usageError(
      `Unknown command "${name}"`,
      close === undefined ? "help lists them" : `did you mean ${close}?`,
    );
  }
  const rest = text.slice(name.length).trim();
  if (rest !== "" && command.form === "") {
    throw usageError(`"${name}" takes nothing, but got "${rest}"`, `write ${name}`);
  }
  return command.read(rest, facts);
}

function only(rest: string, form: string): string {
  if (rest === "") throw usageError("A name is missing", `write ${form}`);
  return unquoted(rest);
}

/** `NAME` or `NAME {…}`; a name with blanks stands in quotes, as in JSON. */
function named(rest: string, form: string): { name: string; object: ServerAsk["params"] } {
  const [, name = "", json = ""] = /^("(?:[^"\\]|\\.)*"|\S+)\s*([^]*)$/.exec(rest) ?? [];
  if (name === "") throw usageError("A name is missing", `write ${form}`);
  const object = json === "" ? {} : objectOf(json, `The arguments are no JSON object`);
  return { name: unquoted(name), object };
}

function unquoted(word: string): string {
  if (!/^".*"$/s.test(word)) return word;
  try {
    const text: unknown = JSON.parse(word);
    return typeof text === "string" ? text : word;
  } catch {
    return word;
  }
}
