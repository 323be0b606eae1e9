/** HTTP clients that know nothing of the proxies of this process's environment. */

const PROXY_VARIABLES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/**
 * What `make` gives, made while no proxy variable is to be seen. The runtime reads them when a client is made, and then they go before what the client was told: an address in `NO_PROXY` isn't even asked for over a unix socket. `make` is synchronous, so nothing else runs meanwhile.
 */
export function withoutProxyVariables<T>(make: () => T): T {
  const hidden: [name: string, value: string][] = [];
  for (const name of PROXY_VARIABLES.flatMap((lower) => [lower, lower.toUpperCase()])) {
    const value = Deno.env.get(name);
    if (value === undefined) continue;
    hidden.push([name, value]);
    Deno.env.delete(name);
  }
  try {
    return make();
  } finally {
    for (const [name, value] of hidden) Deno.env.set(name, value);
  }
}
