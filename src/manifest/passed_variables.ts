/** Variables of the client that reach a server without being named in its configuration. */

/** What concerns proxies and certificates: the way to a server at an address depends on it. */
export const NETWORK_VARIABLES: readonly string[] = [
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

/** Variables that every server gets from the client's environment, besides `inherit_env` and `env`. Their values are no secrets. */
export const PASSED_VARIABLES: readonly string[] = [
  ...["PATH", "HOME", "USER", "SHELL", "LANG", "LC_*", "TERM", "TMPDIR", "TZ", "XDG_*"],
  ...NETWORK_VARIABLES,
];

/** Whether servers get this variable of the client without being told so. */
export function isPassedVariable(name: string): boolean {
  return PASSED_VARIABLES.some((passed) =>
    passed.endsWith("*") ? name.startsWith(passed.slice(0, -1)) : name === passed
  );
}
