/**
 * Rules of the servers in a manifest or in `mcp.yaml` that hold between keys, or for names of keys.
 *
 * A server is started (`command`) or at an address (`url`), never both; the other keys belong to one of the two.
 */
import { type BrokenRule, isMisspelt, timeoutRule } from "./broken_rule.ts";
import { isHeaderName, isName, NAME_RULE } from "./names.ts";
import { isMapping } from "./not_built.ts";
import type { KeyPath } from "./problems.ts";
import { isVariableName } from "./template.ts";

/** Variables that rnix itself puts into a server's environment. */
const RESERVED_PREFIX = "RNIX_";

/** Headers that say something of the request itself; they are rnix's to set. In lower case. */
const RESERVED_HEADERS: readonly string[] = [
  ...["accept", "content-type", "content-length", "transfer-encoding", "connection", "host"],
  ...["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"],
];
const RESERVED_HEADER_PREFIX = "mcp-param-";

/** Keys of a server that is started, each with what to do where there is a `url`. */
const OF_COMMAND: readonly (readonly [key: string, instead: string])[] = [
  ["args", "remove it"],
  ["env", 'remove it; what the server is to know goes into "headers"'],
  ["cwd", "remove it"],
  ["inherit_env", 'remove it; write "${NAME}" into "url" or "headers"'],
];

/** All rules that the mapping of servers at `path` breaks. */
export function serverRules(servers: unknown, path: KeyPath): BrokenRule[] {
  if (!isMapping(servers)) return [];
  return Object.entries(servers).flatMap(([name, server]) => {
    const at = [...path, name];
    const broken: BrokenRule[] = [];
    if (!isName(name)) {
      const message = `Invalid server name "${name}": use ${NAME_RULE}`;
      broken.push({ path: at, at: "key", message });
    }
    if (!isMapping(server)) return broken;
    return [
      ...broken,
      ...kindRules(at, server),
      ...variableRules(at, server["env"]),
      ...headerRules(at, server["headers"]),
      ...timeoutRule(at, server),
    ];
  });
}

/** Which keys go together. */
function kindRules(path: KeyPath, server: Record<string, unknown>): BrokenRule[] {
  const has = (key: string) => Object.hasOwn(server, key);
  const broken = (key: string, message: string): BrokenRule => {
    return { path: [...path, key], at: "key", message };
  };
  if (has("url") && has("command")) {
    const message = '"url" and "command" don\'t go together: keep "command" for a server that is ' +
      'started, "url" for one at an address';
    return [broken("url", message)];
  }
  const { transport_type: transport } = server;
  if (has("url")) {
    const unfit = OF_COMMAND.filter(([key]) => has(key)).map(([key, instead]) =>
      broken(key, `"${key}" is for a server that is started, not for one with a "url"; ${instead}`)
    );
    if (transport !== "stdio") return unfit;
    const message =
      'Transport "stdio" needs a "command", not a "url"; remove it, or say http or sse';
    return [...unfit, broken("transport_type", message)];
  }
  if (!has("command")) {
    if (isMisspelt(server, "command") || isMisspelt(server, "url")) return [];
    const message = `Missing key "command" (or "url") in ${path.join(".")}`;
    return [{ path, at: "key", message }];
  }
  const unfit = has("headers")
    ? [broken("headers", '"headers" go with a "url"; a server that is started takes "env"')]
    : [];
  if (transport !== "http" && transport !== "sse") return unfit;
  const message =
    `Transport "${transport}" needs a "url", not a "command"; remove it, or say stdio`;
  return [...unfit, broken("transport_type", message)];
}

function variableRules(path: KeyPath, env: unknown): BrokenRule[] {
  if (!isMapping(env)) return [];
  return Object.keys(env).flatMap((name): BrokenRule[] => {
    if (!isVariableName(name) || name === "__proto__") {
      const message = `Invalid variable name "${name}": use letters, digits and _`;
      return [{ path: [...path, "env", name], at: "key", message }];
    }
    if (!name.startsWith(RESERVED_PREFIX)) return [];
    const message = `Variable "${name}" is reserved: rnix sets what begins with ${RESERVED_PREFIX}`;
    return [{ path: [...path, "env", name], at: "key", message }];
  });
}

function headerRules(path: KeyPath, headers: unknown): BrokenRule[] {
  if (!isMapping(headers)) return [];
  const seen = new Map<string, string>();
  return Object.keys(headers).flatMap((name): BrokenRule[] => {
    const lower = name.toLowerCase();
    const message = headerNameFault(name, lower, seen.get(lower));
    seen.set(lower, name);
    return message === undefined ? [] : [{ path: [...path, "headers", name], at: "key", message }];
  });
}

function headerNameFault(
  name: string,
  lower: string,
  sameAs: string | undefined,
): string | undefined {
  if (!isHeaderName(name)) return `Invalid header name "${name}"`;
  if (RESERVED_HEADERS.includes(lower) || lower.startsWith(RESERVED_HEADER_PREFIX)) {
    return `Header "${name}" is set by rnix itself; remove it`;
  }
  return sameAs === undefined
    ? undefined
    : `Header "${name}" is there twice, as "${sameAs}" too: upper and lower case are the same`;
}
