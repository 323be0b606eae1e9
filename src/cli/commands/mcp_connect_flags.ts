/** How a server is named on the command line, and the flags that `mcp connect` and `mcp test` share. Every mistake is a usage error. */
import { DURATION_EXAMPLES, parseDuration } from "../../base/duration.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ElicitPolicy, ServerReference, ServerRequest } from "../../base/server_operations.ts";
import { usageError } from "../arguments.ts";
import type { Context, Flag, Invocation, Positional } from "../command.ts";
import { exactly, hasSwitch, valueOf } from "../flag_values.ts";
import { clientFacts } from "../supervise.ts";

export const SERVER_POSITIONALS: readonly Positional[] = [
  { name: "server", kind: "server" },
  { name: "args", optional: true, rest: true },
];

export const SERVER_FLAGS: readonly Flag[] = [
  { name: "agent", value: "MANIFEST", summary: "The server is one of this agent's" },
  {
    name: "header",
    value: '"NAME: VALUE"',
    repeated: true,
    summary: "Sent with every request to a URL",
  },
  {
    name: "transport",
    value: "http|sse",
    summary: "How a URL is spoken to (default: http, then sse)",
    choices: ["http", "sse"],
  },
  {
    name: "elicit",
    value: "decline|defaults|JSON",
    summary: "What a server gets that asks for input (default decline)",
    choices: ["decline", "defaults"],
  },
  {
    name: "timeout",
    value: "DURATION",
    summary: "Limit of one request, in place of the server's own",
  },
  { name: "trust", summary: "Trust what this project's files start" },
];

export const SERVER_DETAILS =
  `<server> is a name in mcp.yaml, with --agent one of that agent's servers, or an http or https URL; after --
it is a command, with its arguments and the variables that every server gets (put env NAME=VALUE before
it for others). The server runs in the daemon for as long as this command does.`;

/** What the daemon is asked to connect to. */
export function serverRequest(invocation: Invocation, context: Context): ServerRequest {
  return {
    server: referenceOf(invocation),
    client: clientFacts(context, false),
    elicit: elicitOf(valueOf(invocation, "elicit") ?? "decline"),
    trust: hasSwitch(invocation, "trust"),
  };
}

/** The limit of one request, milliseconds; undefined: the server's own. */
export function timeoutOf(invocation: Invocation): number | undefined {
  const text = valueOf(invocation, "timeout");
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw usageError(
    `"--timeout" must be a duration, but is "${text}"`,
    `e.g. ${DURATION_EXAMPLES}`,
  );
}

function referenceOf(invocation: Invocation): ServerReference {
  const { words, wordsBeforeDashes } = invocation;
  const [name = "", ...args] = words;
  const isCommand = wordsBeforeDashes === 0;
  if (!isCommand && args.length > 0) {
    throw usageError(
      `One server is connected at a time, but "${args[0]}" follows "${name}"`,
      "put -- before a command with arguments",
    );
  }
  const manifest = valueOf(invocation, "agent");
  const isUrl = !isCommand && manifest === undefined && /^https?:\/\//i.test(name);
  if (!isUrl) refuseUrlFlags(invocation);
  if (isCommand) {
    if (manifest === undefined) return { kind: "command", command: name, args };
    throw usageError('"--agent" and a command after -- exclude each other', "give one of them");
  }
  if (manifest !== undefined) return { kind: "agent", manifest, server: name };
  return isUrl ? atUrl(name, invocation) : { kind: "configured", name };
}

function refuseUrlFlags(invocation: Invocation): void {
  const flag = ["header", "transport"].find((each) => invocation.values.has(each));
  if (flag !== undefined) {
    throw usageError(`"--${flag}" goes with a URL`, "give an http or https URL as the server");
  }
}

function atUrl(url: string, invocation: Invocation): ServerReference {
  if (!URL.canParse(url)) throw usageError(`"${url}" is no URL`, "e.g. https://example.com/mcp");
  const { username, password } = new URL(url);
  if (username + password !== "") {
    throw usageError(
      "The URL holds a user name or a password",
      'give them as --header "Authorization: Basic …"',
    );
  }
  const transport = valueOf(invocation, "transport");
  if (transport !== undefined && transport !== "http" && transport !== "sse") {
    throw usageError(`"--transport" doesn't know "${transport}"`, "one of: http, sse");
  }
  const headers = (invocation.values.get("header") ?? []).map(headerOf);
  return {
    kind: "url",
    url,
    headers: Object.fromEntries(headers),
    ...(transport === undefined ? {} : { transport }),
  };
}

/** A value isn't repeated in the message: it may be a key. */
function headerOf(text: string): [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^]*)$/.exec(text) ?? [];
  // deno-lint-ignore no-control-regex
  if (name === undefined || value === undefined || /[\x00-\x08\x0a-\x1f\x7f]/.test(value)) {
    throw usageError('A "--header" can\'t be sent', 'write --header "NAME: VALUE", on one line');
  }
  return [name, value.trim()];
}

function elicitOf(text: string): ElicitPolicy {
  if (text === "decline" || text === "defaults") return { kind: text };
  return { kind: "content", content: objectOf(text, `"--elicit" doesn't know "${text}"`) };
}

/** A JSON object, which may stand in single quotes as for a shell: what works there is typed here too. Throws a usage error that begins with `message`. */
export function objectOf(given: string, message: string): JsonObject {
  const text = /^'.*'$/s.test(given) ? given.slice(1, -1) : given;
  let value: Json | undefined;
  try {
    value = JSON.parse(text);
  } catch {
    // Told below.
  }
  if (isJsonObject(value)) return exactly(value, text);
  throw usageError(message, 'write a JSON object, e.g. \'{"name": "value"}\'');
}
