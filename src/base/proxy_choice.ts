/**
 * Which proxy a request goes through, as the client's environment says.
 *
 * The rules are curl's: `https_proxy` or `http_proxy` by the scheme of the address, else `all_proxy`; `no_proxy` lists hosts (a name covers its subdomains), `host:port`, addresses, IPv4 networks, or `*`. The lower case name wins over the upper case one.
 */

type Env = { readonly [name: string]: string };

/** A proxy as the runtime takes it. */
export interface ProxyChoice {
  transport: "http" | "https" | "socks5";
  /** Without credentials. */
  url: string;
  basicAuth?: { username: string; password: string };
}

/** Undefined: straight to the server. Throws a TypeError for a proxy that is no address; it doesn't quote it. */
export function proxyFor(target: URL, env: Env): ProxyChoice | undefined {
  if (isExempt(target, read(env, "no_proxy") ?? "")) return undefined;
  const scheme = target.protocol === "https:" ? "https_proxy" : "http_proxy";
  const value = read(env, scheme) ?? read(env, "all_proxy");
  return value === undefined ? undefined : choiceOf(value);
}

/** The name of a proxy variable whose value is no address; undefined where all are well. */
export function badProxyVariable(env: Env): string | undefined {
  return ["http_proxy", "https_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()])
    .find((name) => {
      const value = env[name]?.trim() ?? "";
      try {
        return value !== "" && choiceOf(value) === undefined;
      } catch {
        return true;
      }
    });
}

function read(env: Env, name: string): string | undefined {
  const value = (env[name] ?? env[name.toUpperCase()])?.trim();
  return value === "" ? undefined : value;
}

function choiceOf(value: string): ProxyChoice {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`);
  const transport = url === null ? undefined : transportOf(url.protocol);
  if (url === null || transport === undefined) {
    throw new TypeError("The proxy in the environment is no http, https or socks5 address");
  }
  const { username, password } = url;
  url.username = "";
  url.password = "";
  return {
    transport,
    url: url.href,
    ...(username === "" ? {} : {
      basicAuth: {
        username: decodeURIComponent(username),
        password: decodeURIComponent(password),
      },
    }),
  };
}

function transportOf(protocol: string): ProxyChoice["transport"] | undefined {
  switch (protocol) {
    case "http:":
      return "http";
    case "https:":
      return "https";
    case "socks5:":
    case "socks5h:":
      return "socks5";
    default:
      return undefined;
  }
}

function isExempt(target: URL, list: string): boolean {
  const host = target.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const port = target.port === "" ? (target.protocol === "https:" ? "443" : "80") : target.port;
  return list.split(/[\s,]+/).some((entry) => covers(entry.toLowerCase(), host, port));
}

function covers(entry: string, host: string, port: string): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  const [, bracketed, named, entryPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ??
    [undefined, entry];
  if (entryPort !== undefined && entryPort !== port) return false;
  const name = (bracketed ?? named ?? "").replace(/^\*?\./, "");
  if (name === "") return false;
  return host === name || host.endsWith(`.${name}`) || inNetwork(name, host);
}

/** Whether an IPv4 address lies in a network such as `10.0.0.0/8`. */
function inNetwork(network: string, host: string): boolean {
  const [base = "", bits] = network.split("/");
  const [from, address] = [numberOf(base), numberOf(host)];
  if (bits === undefined || !/^\d{1,2}$/.test(bits)) return false;
  if (from === undefined || address === undefined || Number(bits) > 32) return false;
  const size = 2 ** (32 - Number(bits));
  return Math.floor(from / size) === Math.floor(address / size);
}

function numberOf(address: string): number | undefined {
  const parts = address.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) {
    return undefined;
  }
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}
