/**
 * `rnix run --prompt SERVER/NAME`: a prompt of one of the agent's servers as the run's intent.
 *
 * The server is started once to be asked, before the run is: so the run has its intent from its first record on. What the server says becomes the user's words and never system text.
 */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { nearest } from "../../base/nearest.ts";
import type { ServerNews, ServerSession } from "../../base/server_operations.ts";
import { usageError } from "../arguments.ts";
import type { Context, Flag, Invocation } from "../command.ts";
import { errorOf } from "../failure.ts";
import { hasSwitch, namedValuesOf, valueOf } from "../flag_values.ts";
import { oneLine } from "../plain_text.ts";
import { clientFacts } from "../supervise.ts";
import { questionerOf } from "./mcp_connect_trust.ts";

export const PROMPT_FLAGS: readonly Flag[] = [
  {
    name: "prompt",
    value: "SERVER/NAME",
    summary: "Begin with this prompt of one of the agent's servers; an intent follows it",
  },
  {
    name: "prompt-arg",
    value: "NAME=VALUE",
    repeated: true,
    summary: "An argument of the prompt",
  },
];

interface Wanted {
  server: string;
  name: string;
  args: { [name: string]: string };
}

/** The words of the prompt that is asked for; undefined where none is. Rejects with NOT_FOUND (exit 2), listing the prompts, INVALID (exit 2) for arguments that it doesn't have or lacks, and as `openServer` does. */
export async function promptWords(
  manifest: string,
  invocation: Invocation,
  context: Context,
): Promise<string | undefined> {
  const wanted = wantedIn(invocation);
  if (wanted === undefined) return undefined;
  const questioner = questionerOf(context);
  const system = await context.system();
  const session = await system.openServer({
    server: { kind: "agent", manifest, server: wanted.server },
    client: clientFacts(context, hasSwitch(invocation, "stream")),
    elicit: { kind: "decline" },
    trust: hasSwitch(invocation, "trust"),
  }, {
    onNews: (news) => warn(context, news),
    confirmTrust: (question) => questioner.confirmTrust(question),
  });
  try {
    return await wordsOf(session, wanted, context);
  } finally {
    await session.close();
  }
}

function wantedIn(invocation: Invocation): Wanted | undefined {
  const text = valueOf(invocation, "prompt");
  const args = namedValuesOf(invocation, "prompt-arg");
  if (text === undefined) {
    if (args === undefined) return undefined;
    throw usageError('"--prompt-arg" needs "--prompt"', "say which prompt it is for");
  }
  const slash = text.indexOf("/");
  if (slash <= 0 || slash === text.length - 1) {
    throw usageError(`"--prompt" doesn't know "${text}"`, "write --prompt SERVER/NAME");
  }
  return { server: text.slice(0, slash), name: text.slice(slash + 1), args: args ?? {} };
}

async function wordsOf(session: ServerSession, wanted: Wanted, context: Context): Promise<string> {
  const known = await listed(session, wanted);
  const prompt = known.find(({ name }) => name === wanted.name);
  if (prompt === undefined) throw noSuchPrompt(wanted, known);
  checkArguments(wanted, prompt);
  const params = { name: wanted.name, arguments: wanted.args };
  const result = await asked(session, "prompts/get", params);
  const { text, leftOut } = promptText(result);
  const { loudness, world, json } = context;
  if (leftOut.length > 0 && loudness !== "quiet" && !json) {
    const what = oneLine(leftOut.join(", "));
    world.stderr.write(`notice: Of the prompt only text becomes the intent; left out: ${what}\n`);
  }
  if (text.trim() !== "") return text;
  throw new SysError("INVALID", `Prompt "${wanted.name}" has no text`, {
    device: wanted.server,
    exitCode: EXIT_USAGE,
  });
}

async function listed(session: ServerSession, { server }: Wanted): Promise<JsonObject[]> {
  if (session.facts.capabilities["prompts"] === undefined) {
    throw new SysError("NOT_FOUND", `Server "${server}" has no prompts`, { exitCode: EXIT_USAGE });
  }
  const result = await asked(session, "prompts/list", {});
  const prompts = isJsonObject(result) ? result["prompts"] : undefined;
  return (Array.isArray(prompts) ? prompts : []).filter(isJsonObject);
}

async function asked(session: ServerSession, method: string, params: JsonObject): Promise<Json> {
  const answer = await session.ask({ method, params });
  if (answer.outcome === "ok") return answer.result;
  throw errorOf(answer.error);
}

function noSuchPrompt({ server, name }: Wanted, known: readonly JsonObject[]): SysError {
  const names = known.map((prompt) => String(prompt["name"]));
  const near = nearest(name, names);
  const all = names.length === 0 ? "It has none" : `There is: ${names.join(", ")}`;
  return new SysError("NOT_FOUND", `Server "${server}" has no prompt "${name}"`, {
    exitCode: EXIT_USAGE,
    hint: near === undefined ? all : `Did you mean ${near}? ${all}`,
  });
}

function checkArguments({ name, args }: Wanted, prompt: JsonObject): void {
  const known = Array.isArray(prompt["arguments"]) ? prompt["arguments"].filter(isJsonObject) : [];
  const names = known.map((each) => String(each["name"]));
  const unknown = Object.keys(args).filter((each) => !names.includes(each));
  const missing = known.filter((each) => each["required"] === true)
    .map((each) => String(each["name"])).filter((each) => !Object.hasOwn(args, each));
  const faults = [
    ...(unknown.length === 0 ? [] : [`it doesn't take ${unknown.join(", ")}`]),
    ...(missing.length === 0 ? [] : [`it needs ${missing.join(", ")}`]),
  ];
  if (faults.length === 0) return;
  throw new SysError("INVALID", `Prompt "${name}" can't be had so: ${faults.join("; ")}`, {
    exitCode: EXIT_USAGE,
    hint: names.length === 0
      ? "It takes no arguments"
      : `Its arguments: ${names.join(", ")}; give each as --prompt-arg NAME=VALUE`,
  });
}

/** The text of a prompt's messages; whose words they are is said where they aren't all the user's. */
export function promptText(result: Json): { text: string; leftOut: string[] } {
  const messages = isJsonObject(result) ? result["messages"] : undefined;
  const parts = (Array.isArray(messages) ? messages : []).filter(isJsonObject)
    .map(({ role, content = null }) => ({ role, ...blockText(content) }));
  const isAllUser = parts.every(({ role, text }) => role === "user" || text === undefined);
  const texts = parts.flatMap(({ role, text }) => {
    if (text === undefined) return [];
    return [isAllUser ? text : `[${role === "assistant" ? "assistant" : "user"}]\n${text}`];
  });
  return {
    text: texts.join("\n\n"),
    leftOut: parts.flatMap(({ text, kind }) => text === undefined ? [kind] : []),
  };
}

function blockText(content: Json): { text: string | undefined; kind: string } {
  if (!isJsonObject(content)) return { text: undefined, kind: "unknown content" };
  const { type, text, resource } = content;
  const kind = String(type);
  if (type === "text" && typeof text === "string") return { text, kind };
  if (type === "resource" && isJsonObject(resource) && typeof resource["text"] === "string") {
    return { text: `[resource ${String(resource["uri"])}]\n${resource["text"]}`, kind };
  }
  return { text: undefined, kind };
}

function warn({ loudness, json, world, style }: Context, news: ServerNews): void {
  if (news.kind !== "warning" || loudness === "quiet" || json) return;
  world.stderr.write(`${style.dim(`notice: ${oneLine(news.message)}`)}\n`);
}
