/** Which strings of a configuration are secret: values of variables everywhere, and what is written out where secrets are put, in sinks. */
import { SECRET_CHARS_MIN } from "../base/redaction.ts";
import type { AgentManifest, ServerConfig } from "./agent_manifest.ts";
import { isPassedVariable } from "./passed_variables.ts";
import { parseTemplate } from "./template.ts";

/** Values of a manifest that are written out where secrets are put: of `env`, of headers, and of the parameters of an address. To be redacted in sinks. */
export function literalSecrets({ servers = [], models }: AgentManifest): string[] {
  const written = [models.headers ?? {}, models.fallback?.headers ?? {}];
  return unique([...servers.flatMap(literalsOfServer), ...written.flatMap(literalValues)]);
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
