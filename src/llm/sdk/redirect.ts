/** Redirects of model requests: none is followed, since key, headers and the whole conversation would go along. */
import { SysError } from "../../base/errors.ts";

/** Throws INVALID for an answer that sends the request elsewhere, naming where, without what an address may hold of secrets. Takes the URL that was asked. */
export function refuseRedirect(response: Response, asked: string | URL | Request): void {
  const { status } = response;
  if (status < 300 || status >= 400) return;
  response.body?.cancel().catch(() => {});
  const from = new URL(asked instanceof Request ? asked.url : asked);
  const location = response.headers.get("location") ?? "";
  const to = URL.canParse(location, from) ? new URL(location, from) : undefined;
  const place = to === undefined
    ? "without saying where"
    : to.origin === from.origin
    ? "to another path of its own"
    : `to ${originOf(to)}`;
  throw new SysError(
    "INVALID",
    `${from.host} redirects the request ${place} (HTTP ${status}); key and conversation are not sent after a redirect`,
    { hint: 'Write the address that answers itself as "base_url"' },
  );
}

/** Scheme, host and port: all that is said of an address. */
function originOf({ protocol, host }: URL): string {
  return host === "" ? `an address of ${protocol}` : `${protocol}//${host}`;
}
