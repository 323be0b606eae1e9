/**
 * A server's configuration with the client's environment filled in: what is started, where, with which variables, and which of its strings are secret.
 *
 * Variables come from the client that runs or resumes. All that are missing are told in one error, each with its key.
 */
import { isAbsolute, join, resolve } from "node:path";
import { SysError } from "../base/errors.ts";
import { EXIT_MOUNT, EXIT_USAGE } from "../base/exit.ts";
import { SECRET_CHARS_MIN } from "../base/redaction.ts";
import type { AgentManifest, ModelPlace, ServerConfig } from "./agent_manifest.ts";
import { expandTemplate, parseTemplate } from "./template.ts";

/** Variables that every server gets from the client's environment, besides `inherit_env` and `env`. Their values are no secrets. */
export const PASSED_VARIABLES: readonly string[] = [
  ...["PATH", "HOME", "USER", "SHELL", "LANG", "LC_*", "TERM", "TMPDIR", "TZ", "XDG_*"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"],
  ...["http_proxy", "https_proxy", "all_proxy", "no_proxy"],
  ...[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
  ],
];

/** What expansion needs to know of its surroundings. */
export interface ExpandFacts {
  /** Environment of the client that runs or resumes. */
  clientEnv: { [name: string]: string };
  /** `LoadedAgent.folder`: where `cwd` and a command with `/` start from. */
  manifestFolder: string;
  /** Absolute: the run's own folder, for servers without `cwd`. */
  runFolder: string;
}

/** Ready to be started. */
export interface ExpandedServer {
  /** A bare name (to be found on the client's PATH) or an absolute path. */
  command: string;
  args: string[];
  /** The child's whole environment. */
  env: { [name: string]: string };
  /** Absolute. */
  cwd: string;
  /** Values to be redacted wherever they appear, results included. */
  secrets: string[];
  /** Values to be redacted in sinks (trace, logs, errors) only. */
  sinkOnly: string[];
}

/** The outcome of expanding several servers at once. */
export interface ExpandedServers {
  ready: { config: ServerConfig; expanded: ExpandedServer }[];
  /** Servers with `required: false` that lack a variable. */
  failed: { config: ServerConfig; error: SysError }[];
}

/** What a model provider needs, with the environment filled in. */
export interface ResolvedModel {
  provider: string;
  kind: string;
  model: string;
  baseUrl?: string;
  apiKey?: string;
  headers?: { [name: string]: string };
  /** The key and variables in the URL and headers. */
  secrets: string[];
  /** Header values that are written out: to be redacted in sinks only. */
  sinkOnly: string[];
}

interface Missing {
  variable: string;
  key: string;
}

/** Expands all servers. Throws one INVALID (exit 3) for everything that required servers lack; optional ones land in `failed`. */
export function expandServers(
  configs: readonly ServerConfig[],
  facts: ExpandFacts,
): ExpandedServers {
  const attempts = configs.map((config) => ({ config, ...tryExpand(config, facts) }));
  const fatal = attempts.filter(({ config, missing }) => config.required && missing.length > 0);
  if (fatal.length > 0) {
    const names = fatal.map(({ config }) => config.name);
    throw missingError(fatal.flatMap(({ missing }) => missing), names);
  }
  return {
    ready: attempts.filter(({ missing }) => missing.length === 0),
    failed: attempts.filter(({ missing }) => missing.length > 0).map(({ config, missing }) => ({
      config,
      error: missingError(missing, [config.name]),
    })),
  };
}

/** Fills in a model's URL, headers and key. Throws INVALID or UNAUTHENTICATED (exit 2) when a variable is missing. */
export function resolveModel(
  config: ModelPlace & { preferred: string },
  clientEnv: { [name: string]: string },
): ResolvedModel {
  const { provider, kind = provider, preferred } = config;
  const model: ResolvedModel = { provider, kind, model: preferred, secrets: [], sinkOnly: [] };
  const lacks: Missing[] = [];
  const fill = (text: string, key: string): string => {
    const expansion = expandTemplate(text, clientEnv);
    lacks.push(...expansion.missing.map((variable) => ({ variable, key })));
    model.secrets.push(...secretValues(expansion.used));
    return expansion.text;
  };
  if (config.baseUrl !== undefined) {
    model.baseUrl = fill(config.baseUrl, "models.base_url");
    // A URL's host is told in lower case.
    model.secrets.push(...model.secrets.map((secret) => secret.toLowerCase()));
  }
  if (config.headers !== undefined) {
    const headers = Object.entries(config.headers).map(([name, value]): [string, string] => {
      return [name, fill(value, `providers.${provider}.headers.${name}`)];
    });
    model.headers = Object.fromEntries(headers);
    model.sinkOnly.push(...unique(literalValues(config.headers)));
  }
  if (lacks.length > 0) throw missingError(lacks, []).with({ exitCode: EXIT_USAGE });
  if (model.baseUrl !== undefined) requireHttp(model.baseUrl, config.baseUrl ?? "");
  const key = config.apiKeyEnv === undefined ? "" : clientEnv[config.apiKeyEnv] ?? "";
  if (key !== "") {
    model.apiKey = key;
    if (key.length >= SECRET_CHARS_MIN) model.secrets.push(key);
  } else if (config.apiKeyEnv !== undefined && config.keyOptional !== true) {
    throw new SysError(
      "UNAUTHENTICATED",
      `No key for the model: "${config.apiKeyEnv}" is not set`,
      {
        hint: `export ${config.apiKeyEnv}=… (models.api_key_env names another variable)`,
        exitCode: EXIT_USAGE,
      },
    );
  }
  return { ...model, secrets: unique(model.secrets) };
}

/** Throws INVALID (exit 2) for an address that no request can go to. It says how the address is written, never what it is: its variables may hold secrets. */
function requireHttp(baseUrl: string, template: string): void {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const facts = { exitCode: EXIT_USAGE };
  if (url !== undefined && url.username + url.password !== "") {
    throw new SysError("INVALID", "models.base_url holds a user name or a password", {
      ...facts,
      hint:
        "Take it out of the address: a key goes into api_key_env, or into headers of providers.yaml",
    });
  }
  if (url !== undefined && ["http:", "https:"].includes(url.protocol)) return;
  throw new SysError("INVALID", `models.base_url "${template}" isn't an http or https URL`, {
    ...facts,
    hint: "Such as base_url: https://api.openai.com/v1",
  });
}

/** Whether servers get this variable of the client without being told so. */
export function isPassedVariable(name: string): boolean {
  return PASSED_VARIABLES.some((passed) =>
    passed.endsWith("*") ? name.startsWith(passed.slice(0, -1)) : name === passed
  );
}

function tryExpand(
  config: ServerConfig,
  facts: ExpandFacts,
): { expanded: ExpandedServer; missing: Missing[] } {
  const missing: Missing[] = [];
  const secrets: string[] = [];
  const sinkOnly: string[] = [];
  const fill = (text: string, key: string): string => {
    const expansion = expandTemplate(text, facts.clientEnv);
    const where = `mcp.servers.${config.name}.${key}`;
    missing.push(...expansion.missing.map((variable) => ({ variable, key: where })));
    secrets.push(...secretValues(expansion.used));
    return expansion.text;
  };
  const command = fill(config.command, "command");
  const args = config.args.map((arg, index) => fill(arg, `args[${index}]`));
  const env = inherited(config, facts.clientEnv);
  sinkOnly.push(...config.inheritEnv.map((name) => env[name] ?? ""));
  for (const [name, template] of Object.entries(config.env)) {
    const value = fill(template, `env.${name}`);
    env[name] = value;
  }
  sinkOnly.push(...literalValues(config.env));
  const cwd = config.cwd === undefined
    ? facts.runFolder
    : fromManifest(fill(config.cwd, "cwd"), facts);
  return {
    expanded: {
      command: command.includes("/") ? fromManifest(command, facts) : command,
      args,
      env,
      cwd,
      secrets: unique(secrets),
      sinkOnly: unique(sinkOnly.filter((value) => value.length >= SECRET_CHARS_MIN)),
    },
    missing,
  };
}

/** Values of a manifest that are written out where secrets are put: of `env` and of headers. To be redacted in sinks. */
export function literalSecrets({ servers = [], models }: AgentManifest): string[] {
  const written = [
    ...servers.map(({ env }) => env),
    models.headers ?? {},
    models.fallback?.headers ?? {},
  ];
  return unique(written.flatMap(literalValues));
}

/** Values without variables, as they are passed on; of "Bearer KEY" the key alone too, for it may be echoed so. */
function literalValues(templates: { [name: string]: string }): string[] {
  return Object.values(templates).map(parseTemplate)
    .filter(({ parts }) => parts.every((part) => typeof part === "string"))
    .map(({ parts }) => parts.join(""))
    .flatMap((value) => [value, value.replace(/^(Bearer|Basic|Token) +/i, "")])
    .filter((value) => value.length >= SECRET_CHARS_MIN);
}

function inherited(
  config: ServerConfig,
  clientEnv: { [name: string]: string },
): { [name: string]: string } {
  const env: { [name: string]: string } = {};
  for (const [name, value] of Object.entries(clientEnv)) {
    if (isPassedVariable(name) || config.inheritEnv.includes(name)) env[name] = value;
  }
  return env;
}

/** Manifest-relative; an embedded agent has no folder, so there the run's is taken. */
function fromManifest(path: string, facts: ExpandFacts): string {
  if (isAbsolute(path)) return resolve(path);
  const folder = isAbsolute(facts.manifestFolder) ? facts.manifestFolder : facts.runFolder;
  return join(folder, path);
}

function secretValues(used: readonly { name: string; value: string }[]): string[] {
  return used.filter(({ name, value }) =>
    value.length >= SECRET_CHARS_MIN && !isPassedVariable(name)
  )
    .map(({ value }) => value);
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function missingError(missing: readonly Missing[], servers: readonly string[]): SysError {
  const keys = new Map<string, string[]>();
  for (const { variable, key } of missing) {
    keys.set(variable, [...(keys.get(variable) ?? []), key]);
  }
  const names = [...keys.keys()];
  const told = [...keys].map(([variable, places]) =>
    `"${variable}" (${unique(places).join(", ")})`
  );
  const single = servers.length === 1 ? servers[0] : undefined;
  return new SysError(
    "INVALID",
    `${names.length === 1 ? "Variable" : "Variables"} ${told.join(", ")} ${
      names.length === 1 ? "is" : "are"
    } not set`,
    {
      hint: `export ${names.map((name) => `${name}=…`).join(" ")}, or give a default: \${${
        names[0]
      }:-…}`,
      syscall: servers.length === 0 ? undefined : "Mount",
      device: single,
      exitCode: EXIT_MOUNT,
    },
  );
}
