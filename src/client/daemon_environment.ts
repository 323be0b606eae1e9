/**
 * The environment that a daemon is started with: what it needs itself, and nothing else of whoever happened to start it.
 *
 * It stays readable under /proc as long as the daemon lives, and a run's environment, its proxies included, comes with its request anyway.
 */

const NAMES: ReadonlySet<string> = new Set([
  // Where rnix keeps things, and how it is started.
  ...["HOME", "RNIX_HOME", "RNIX_DEBUG"],
  ...["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"],
  // Programs that it starts by name.
  ...["PATH", "TMPDIR", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME"],
  // The runtime: where its files are, and whom it trusts where a run says nothing else.
  ...["DENO_DIR", "DENO_CERT", "DENO_TLS_CA_STORE", "DENO_NO_UPDATE_CHECK", "NO_COLOR"],
  ...["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "LD_LIBRARY_PATH"],
]);
const LOCALE = /^LC_[A-Z]+$/;

/** What a daemon gets of a client's environment. */
export function daemonEnvironment(
  env: { readonly [name: string]: string },
): { [name: string]: string } {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => NAMES.has(name) || LOCALE.test(name)),
  );
}
