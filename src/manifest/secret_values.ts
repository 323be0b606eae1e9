/** Which strings of a configuration are secret: values of variables everywhere, and what is written out where secrets are put, in sinks. */
import { SECRET_CHARS_MIN } from "../base/redaction.ts";
import type { AgentManifest, LoadedAgent, ModelPlace, ServerConfig } from "./agent_manifest.ts";
import { isPassedVariable, NETWORK_VARIABLES } from "./passed_variables.ts";
import { parseTemplate } from "./template.ts";

/** The same of an agent and all that it may start: what these give back comes up in its own run. */
export function literalSecretsOf({ manifest, family }: Pick<LoadedAgent, "manifest" | "family">) {
  const members = Object.values(family?.members ?? {});
  return unique([manifest, ...members.map((member) => member.manifest)].flatMap(literalSecrets));
}

/** Values of a manifest that are written out where secrets are put: of `env`, of headers, and of the parameters of an address. To be redacted in sinks. */
export function literalSecrets({ servers = [], models }: AgentManifest): string[] {
  const places = models.fallback === undefined ? [models] : [models, models.fallback];
  return unique([...servers.flatMap(literalsOfServer), ...places.flatMap(literalsOfModel)]);
}

/** The same for the place of a model. */
export function literalsOfModel({ headers = {}, baseUrl = "" }: Partial<ModelPlace>): string[] {
  return [...literalValues(headers), ...literalQueryValues(baseUrl)];
}

/** The same for one server. */
export function literalsOfServer(server: ServerConfig): string[] {
  return server.transport === "stdio"
    ? literalValues(server.env)
    : [...literalValues(server.headers), ...literalQueryValues(server.url)];
}

/** Values without variables, as they are passed on; of "Bearer KEY" the key alone too, for it may be echoed so. */
export function literalValues(templates: { [name: string]: string }): string[] {
  return Object.values(templates).map(parseTemplate)
    .filter(({ parts }) => parts.every((part) => typeof part === "string"))
    .map(({ parts }) => parts.join(""))
    .flatMap((value) => [value, value.replace(/^(Bearer|Basic|Token) +/i, "")])
    .filter((value) => value.length >= SECRET_CHARS_MIN);
}

/** Values without variables that an address gives its parameters, decoded. */
function literalQueryValues(url: string): string[] {
  const variable = "\0";
  const text = parseTemplate(url).parts.map((part) => typeof part === "string" ? part : variable);
  const query = /\?([^#]*)/.exec(text.join(""))?.[1] ?? "";
  return [...new URLSearchParams(query).values()].filter((value) =>
    value.length >= SECRET_CHARS_MIN && !value.includes(variable)
  );
}

/** Passwords in the addresses of proxies, which every server and the shell get: as they are written there, and decoded. */
export function proxyPasswords(env: { readonly [name: string]: string }): string[] {
  const passwords = NETWORK_VARIABLES.flatMap((name) => {
    const url = URL.parse(env[name] ?? "") ?? URL.parse(`http://${env[name] ?? ""}`);
    return url === null ? [] : [url.password, decoded(url.password)];
  });
  return unique(passwords.filter((password) => password.length >= SECRET_CHARS_MIN));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Values that came from variables, those that every server gets aside. */
export function secretValues(used: readonly { name: string; value: string }[]): string[] {
  return used.filter(({ name, value }) =>
    value.length >= SECRET_CHARS_MIN && !isPassedVariable(name)
  )
    .map(({ value }) => value);
}

/** Each once, in order. */
export function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
