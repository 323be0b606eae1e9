/**
 * Whether a server could be started or reached, as far as that can be told without doing it: its variables, its program, its folder.
 *
 * Nothing is started and nobody is asked. The program is looked for by the code that starts it, in the PATH that the server would get. What is told holds no value of a variable.
 */
import { SysError } from "../base/errors.ts";
import { Redactor } from "../base/redaction.ts";
import type { Storage } from "../base/storage.ts";
import type { ServerConfig } from "./agent_manifest.ts";
import { checkProgram, type Fault } from "./check_program.ts";
import { type ExpandedStdioServer, type ExpandFacts, expandServers } from "./expand.ts";
import { expandTemplate } from "./template.ts";

/** What can be said of a server without starting it. */
export interface ServerCheck {
  faults: Fault[];
  /** Where its program was found; absent for a server at an address. */
  program?: string;
}

/** Surroundings of a check. */
export interface ServerCheckFacts extends ExpandFacts {
  storage: Storage;
}

/** Stands in for the value of a variable that isn't set, so that all else can be looked at. */
const STAND_IN = "_";

/** Checks one server. What is wrong with it is told, never thrown. */
export async function checkServer(
  config: ServerConfig,
  facts: ServerCheckFacts,
): Promise<ServerCheck> {
  const missing = missingVariables(config, facts.clientEnv);
  const faults = [...missing].map(([name, keys]): Fault => ({
    message: `variable '${name}' is not set (${keys.join(", ")})`,
    hint: `export ${name}=…, or give it a default: \${${name}:-…}`,
  }));
  if (config.transport !== "stdio" && missing.size > 0) return { faults };
  const filled = Object.fromEntries([...missing.keys()].map((name) => [name, STAND_IN]));
  const clientEnv = { ...facts.clientEnv, ...filled };
  try {
    const [ready] = expandServers([{ ...config, required: true }], { ...facts, clientEnv }).ready;
    if (config.transport !== "stdio" || ready?.expanded.transport !== "stdio") return { faults };
    const { expanded } = ready;
    const lacks = (key: string) => [...missing.values()].some((keys) => keys.includes(key));
    const sound = (check: Fault | undefined) => check === undefined ? [] : [check];
    faults.push(...sound(lacks("cwd") ? undefined : await cwdFault(config.cwd, expanded, facts)));
    if (lacks("command") || lacks("env.PATH")) return { faults };
    const program = await checkProgram({
      storage: facts.storage,
      command: expanded.command,
      shown: config.command,
      cwd: expanded.cwd,
      path: expanded.env["PATH"],
    });
    const redactor = new Redactor([...expanded.secrets, ...expanded.sinkOnly]);
    if ("path" in program) return { faults, program: redactor.redact(program.path) };
    return { faults: [...faults, redacted(program.fault, redactor)] };
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    return { faults: [...faults, faultOf(thrown)] };
  }
}

/** Variables that are not set and have no default, each with the keys that want it. */
function missingVariables(
  config: ServerConfig,
  env: { [name: string]: string },
): Map<string, string[]> {
  const missing = new Map<string, string[]>();
  for (const [key, template] of templatesOf(config)) {
    for (const name of expandTemplate(template, env).missing) {
      missing.set(name, [...missing.get(name) ?? [], key]);
    }
  }
  return missing;
}

/** Every text of a server that variables may stand in, by key. */
function templatesOf(config: ServerConfig): [key: string, template: string][] {
  const members = (key: string, texts: { [name: string]: string }) =>
    Object.entries(texts).map(([name, text]): [string, string] => [`${key}.${name}`, text]);
  if (config.transport !== "stdio") {
    return [["url", config.url], ...members("headers", config.headers)];
  }
  return [
    ["command", config.command],
    ...config.args.map((text, index): [string, string] => [`args[${index}]`, text]),
    ...members("env", config.env),
    ...config.cwd === undefined ? [] : [["cwd", config.cwd] satisfies [string, string]],
  ];
}

async function cwdFault(
  shown: string | undefined,
  { cwd }: ExpandedStdioServer,
  { storage }: ServerCheckFacts,
): Promise<Fault | undefined> {
  const facts = shown === undefined ? undefined : await storage.stat(cwd);
  if (shown === undefined || facts?.kind === "folder" || facts?.kind === "link") return undefined;
  return {
    message: facts === undefined
      ? `its folder '${shown}' does not exist (cwd)`
      : `'${shown}' is not a folder (cwd)`,
    hint: "cwd starts from the folder of the file that it is written in",
  };
}

function faultOf({ message, hint }: SysError): Fault {
  return { message, ...hint === undefined ? {} : { hint } };
}

function redacted({ message, hint }: Fault, redactor: Redactor): Fault {
  return {
    message: redactor.redact(message),
    ...hint === undefined ? {} : { hint: redactor.redact(hint) },
  };
}
