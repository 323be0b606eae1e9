/**
 * A server's configuration with the client's environment filled in: what is started or spoken to, with which values, and which of its strings are secret.
 *
 * One rule for command, args, env, cwd, url and headers. Variables come from the client that runs or resumes. All that are missing are told in one error, each with its key; what a value turns out to be unfit for is told by its key, never with the value.
 */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { SysError } from "../base/errors.ts";
import { EXIT_MOUNT } from "../base/exit.ts";
import { shownFrom } from "../base/paths.ts";
import { SECRET_CHARS_MIN } from "../base/redaction.ts";
import type { HttpServerConfig, ServerConfig, StdioServerConfig } from "./agent_manifest.ts";
import { headerFault, holdsLogin } from "./manifest_schema.ts";
import { type Missing, missingError } from "./missing_variables.ts";
import type { PlaceOf } from "./places.ts";
import type { KeyPath } from "./problems.ts";
import { isPassedVariable, NETWORK_VARIABLES } from "./passed_variables.ts";
import { literalsOfServer, proxyPasswords, secretValues, unique } from "./secret_values.ts";
import { expandTemplate } from "./template.ts";

/** What expansion needs to know of its surroundings. */
export interface ExpandFacts {
  /** Environment of the client that runs or resumes. */
  clientEnv: { [name: string]: string };
  /** `LoadedAgent.folder`: where `cwd` and a command with `/` start from. */
  manifestFolder: string;
  /** Absolute: the run's own folder, for servers without `cwd`. */
  runFolder: string;
  /** Where a value stands, by its path in a manifest, for messages. */
  placeOf?: PlaceOf | undefined;
}

interface Secrets {
  /** Values of variables, inherited ones too, to be redacted wherever they appear, results included: so no journal holds them. */
  secrets: string[];
  /** Values to be redacted in sinks (trace, logs, errors) only. */
  sinkOnly: string[];
}

/** Ready to be started. */
export interface ExpandedStdioServer extends Secrets {
  transport: "stdio";
  /** A bare name (to be found on the client's PATH) or an absolute path. */
  command: string;
  args: string[];
  /** The child's whole environment. */
  env: { [name: string]: string };
  /** Absolute. */
  cwd: string;
}

/** Ready to be spoken to. */
export interface ExpandedHttpServer extends Secrets {
  transport: "http" | "sse" | "auto";
  /** Absolute, http or https, without a user name or a password. */
  url: string;
  headers: { [name: string]: string };
  /** Of the client's environment only what concerns proxies and certificates. */
  env: { [name: string]: string };
}

export type ExpandedServer = ExpandedStdioServer | ExpandedHttpServer;

/** A server, and what it is in this environment. */
export interface ReadyServer {
  config: ServerConfig;
  expanded: ExpandedServer;
}

/** The outcome of expanding several servers at once. */
export interface ExpandedServers {
  ready: ReadyServer[];
  /** Servers with `required: false` that lack a variable, or whose values don't fit. */
  failed: { config: ServerConfig; error: SysError }[];
}

/** Expands all servers. Throws one INVALID (exit 3) for everything that required servers lack; optional ones land in `failed`. */
export function expandServers(
  configs: readonly ServerConfig[],
  facts: ExpandFacts,
): ExpandedServers {
  const attempts = configs.map((config) => {
    const filling = new Filling(config, facts);
    const expanded = config.transport === "stdio"
      ? expandStdio(config, facts, filling)
      : expandHttp(config, facts, filling);
    return { config, expanded, filling };
  });
  const fatal = attempts.filter(({ config, filling }) => config.required && filling.failed);
  if (fatal.length > 0) throw errorOf(fatal);
  const failed = attempts.filter(({ filling }) => filling.failed);
  return {
    ready: attempts.filter(({ filling }) => !filling.failed)
      .map(({ config, expanded }) => ({ config, expanded })),
    failed: failed.map((attempt) => ({ config: attempt.config, error: errorOf([attempt]) })),
  };
}

/** Fills in the values of one server, and gathers what is missing and what is secret. */
class Filling {
  readonly missing: Missing[] = [];
  /** What is wrong with a filled-in value, a sentence each. */
  readonly faults: string[] = [];
  readonly secrets: string[] = [];
  readonly #config: ServerConfig;
  readonly #facts: ExpandFacts;

  constructor(config: ServerConfig, facts: ExpandFacts) {
    this.#config = config;
    this.#facts = facts;
  }

  get failed(): boolean {
    return this.missing.length + this.faults.length > 0;
  }

  /** The value of a key. `faultOf` looks at it once it is whole. */
  fill(template: string, path: KeyPath, faultOf?: (value: string) => string | undefined): string {
    const expansion = expandTemplate(template, this.#facts.clientEnv);
    const where = this.#where(path);
    for (const variable of expansion.missing) {
      const inFile = ["mcp", "servers", this.#config.name, ...path];
      const place = this.#facts.placeOf?.(inFile, `\${${variable}}`);
      this.missing.push({ variable, key: where, place });
    }
    this.secrets.push(...secretValues(expansion.used));
    const fault = expansion.missing.length > 0 ? undefined : faultOf?.(expansion.text);
    if (fault !== undefined) this.faults.push(`${where}: ${fault}`);
    return expansion.text;
  }

  /** The key as a person finds it. */
  #where(path: KeyPath): string {
    const { name, file } = this.#config;
    const key = path.map((step, index) =>
      typeof step === "number" ? `[${step}]` : `${index === 0 ? "" : "."}${String(step)}`
    ).join("");
    return file === undefined
      ? `mcp.servers.${name}.${key}`
      : `servers.${name}.${key} of ${shownFrom(this.#facts.runFolder, file)}`;
  }
}

function expandStdio(
  config: StdioServerConfig,
  facts: ExpandFacts,
  filling: Filling,
): ExpandedStdioServer {
  const command = filling.fill(config.command, ["command"]);
  const args = config.args.map((arg, index) => filling.fill(arg, ["args", index]));
  const env = inherited(config, facts.clientEnv);
  filling.secrets.push(
    ...secretValues(config.inheritEnv.map((name) => ({ name, value: env[name] ?? "" }))),
    ...proxyPasswords(env),
  );
  for (const [name, template] of Object.entries(config.env)) {
    env[name] = filling.fill(template, ["env", name]);
  }
  const folder = folderOf(config, facts);
  return {
    transport: "stdio",
    command: command.includes("/") ? resolveFrom(folder, command) : command,
    args,
    env,
    cwd: config.cwd === undefined
      ? facts.runFolder
      : resolveFrom(folder, filling.fill(config.cwd, ["cwd"])),
    secrets: unique(filling.secrets),
    sinkOnly: sinkOnly(literalsOfServer(config)),
  };
}

function expandHttp(
  config: HttpServerConfig,
  { clientEnv }: ExpandFacts,
  filling: Filling,
): ExpandedHttpServer {
  const url = filling.fill(config.url, ["url"], (value) => addressFault(value, config.url));
  // A URL's host is told in lower case.
  filling.secrets.push(...filling.secrets.map((secret) => secret.toLowerCase()));
  const headers = Object.entries(config.headers).map(([name, template]): [string, string] => {
    return [name, filling.fill(template, ["headers", name], headerFault)];
  });
  const env = Object.entries(clientEnv).filter(([name]) => NETWORK_VARIABLES.includes(name));
  return {
    transport: config.transport,
    url,
    headers: Object.fromEntries(headers),
    env: Object.fromEntries(env),
    secrets: unique([...filling.secrets, ...proxyPasswords(clientEnv)]),
    sinkOnly: sinkOnly(literalsOfServer(config)),
  };
}

/** What keeps an address from being one. It says how it is written, never what it is: its variables may hold secrets. */
function addressFault(url: string, template: string): string | undefined {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol)) {
    return `"${template}" isn't an http or https URL with the values it gets`;
  }
  return holdsLogin(parsed)
    ? `"${template}" holds a user name or a password; put it into "headers"`
    : undefined;
}

/** Everything that these servers lack, in one error. */
function errorOf(attempts: readonly { config: ServerConfig; filling: Filling }[]): SysError {
  const names = attempts.map(({ config }) => config.name);
  const faults = attempts.flatMap(({ filling }) => filling.faults);
  const missing = attempts.flatMap(({ filling }) => filling.missing);
  if (faults.length === 0) return missingError(missing, names);
  const lacks = missing.length === 0 ? undefined : missingError(missing, names);
  const told = lacks === undefined ? faults : [lacks.message, ...faults];
  return new SysError("INVALID", told.join("; "), {
    hint: lacks?.hint ?? "See what the variables in it are set to",
    syscall: "Mount",
    device: names.length === 1 ? names[0] : undefined,
    exitCode: EXIT_MOUNT,
  });
}

function inherited(
  config: StdioServerConfig,
  clientEnv: { [name: string]: string },
): { [name: string]: string } {
  const env: { [name: string]: string } = {};
  for (const [name, value] of Object.entries(clientEnv)) {
    if (isPassedVariable(name) || config.inheritEnv.includes(name)) env[name] = value;
  }
  return env;
}

/** Where relative paths start from; an embedded agent has no folder, so there the run's is taken. */
function folderOf(config: ServerConfig, facts: ExpandFacts): string {
  if (config.file !== undefined) return dirname(config.file);
  return isAbsolute(facts.manifestFolder) ? facts.manifestFolder : facts.runFolder;
}

function resolveFrom(folder: string, path: string): string {
  return isAbsolute(path) ? resolve(path) : join(folder, path);
}

function sinkOnly(values: readonly string[]): string[] {
  return unique(values.filter((value) => value.length >= SECRET_CHARS_MIN));
}
