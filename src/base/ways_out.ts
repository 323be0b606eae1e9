/**
 * Ways out to the network as the environments of clients say: through their proxies, with their certificates. What goes the same way shares connections, whoever's it is.
 *
 * The runtime would take both from the process that it runs in, which is a daemon's here and nobody's business.
 */
import { type ProxyChoice, proxyFor } from "./proxy_choice.ts";
import { withoutProxyVariables } from "./without_proxies.ts";

type Env = { readonly [name: string]: string };

/** Files with certificates to trust besides the usual ones. */
const CERTIFICATE_VARIABLES = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] as const;

/** Certificates to trust besides the usual ones, as the environment says. A file that can't be read is told to `warn` and left out. */
export async function certificatesOf(
  env: Env,
  warn: (message: string) => void,
): Promise<string[]> {
  const found: string[] = [];
  for (const name of CERTIFICATE_VARIABLES) {
    const path = env[name];
    if (path === undefined || path === "") continue;
    try {
      found.push(await Deno.readTextFile(path));
    } catch {
      warn(`The certificates of ${name} can't be read; they are left out`);
    }
  }
  return found;
}

/** How a client goes out. */
export interface Way {
  proxy: ProxyChoice | undefined;
  certificates: readonly string[];
}

/** A client that goes this way and no other, whatever the environment of this process says. To be closed. */
export function httpClientFor(
  { proxy, certificates }: Way,
  options: Pick<Deno.CreateHttpClientOptions, "poolIdleTimeout" | "poolMaxIdlePerHost"> = {},
): Deno.HttpClient {
  const whole = {
    ...options,
    ...(proxy === undefined ? {} : { proxy }),
    ...(certificates.length === 0 ? {} : { caCerts: [...certificates] }),
  };
  return withoutProxyVariables(() => Deno.createHttpClient(whole));
}

interface SharedClient {
  client: Deno.HttpClient;
  users: number;
}

/** All ways that are in use. */
export class WaysOut {
  /** By what they go through. */
  readonly #clients = new Map<string, SharedClient>();

  /** The ways of one environment; what is wrong with it is told to `warn`, once. To be closed. */
  open(env: Env, warn: (message: string) => void): WayOut {
    return new WayOut(this.#clients, env, warn);
  }

  /** Clients that are open. */
  get size(): number {
    return this.#clients.size;
  }
}

/** The ways of one environment. A client is made when the first request goes its way. */
export class WayOut {
  readonly #clients: Map<string, SharedClient>;
  readonly #env: Env;
  readonly #warn: (message: string) => void;
  /** Those that this one keeps open. */
  readonly #used = new Set<string>();
  #certificates: Promise<string[]> | undefined;
  #closed = false;

  constructor(
    clients: Map<string, SharedClient>,
    env: Env,
    warn: (message: string) => void,
  ) {
    this.#clients = clients;
    this.#env = env;
    this.#warn = warn;
  }

  /** As the runtime's own `fetch`. Rejects with a TypeError for a proxy that is no address. */
  readonly fetch: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const certificates = await (this.#certificates ??= certificatesOf(this.#env, this.#warn));
    return await fetch(input, { ...init, client: this.#clientFor(url, certificates) });
  };

  /** Lets go of its clients; the last one that does closes them. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const key of this.#used) {
      const shared = this.#clients.get(key);
      if (shared === undefined || --shared.users > 0) continue;
      this.#clients.delete(key);
      shared.client.close();
    }
    this.#used.clear();
  }

  #clientFor(url: URL, certificates: string[]): Deno.HttpClient {
    if (this.#closed) throw new TypeError("The way out is closed");
    const way: Way = { proxy: proxyFor(url, this.#env), certificates };
    const key = JSON.stringify([way.proxy ?? null, certificates]);
    let shared = this.#clients.get(key);
    if (shared === undefined) {
      shared = { client: httpClientFor(way), users: 0 };
      this.#clients.set(key, shared);
    }
    if (!this.#used.has(key)) {
      this.#used.add(key);
      shared.users += 1;
    }
    return shared.client;
  }
}
