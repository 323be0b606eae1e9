/**
 * Requests to one server over HTTP: through the proxies and with the certificates of the client's environment, redirected within the server's origin only.
 *
 * The runtime sends a request again by itself when a connection that was used before breaks under it, though the server may have read it. So what must not be done twice goes on a connection of its own, where that can't happen; only the rest shares connections. A request that its caller would rather repeat than wait for a connection shares them too, with a body that the runtime can't send a second time: who repeats it knows of it.
 *
 * A failed request says whether anything of it can have reached the server. Addresses and header values are in no message.
 */
import { type ProxyChoice, proxyFor } from "../base/proxy_choice.ts";
import { certificatesOf, httpClientFor } from "../base/ways_out.ts";

const REDIRECTS_MAX = 5;
/** A connection that was idle longer is not used again: servers close theirs after five seconds. */
const IDLE_MS_MAX = 3_000;

/** What to look at where a proxy is in the way. */
const PROXY_HINT = "Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY";
const CERTIFICATE_HINT =
  "Name a file with the certificate of its authority in SSL_CERT_FILE or NODE_EXTRA_CA_CERTS";

/** A request that got no response. */
export class RequestFailure extends Error {
  /** Whether it is certain that the server saw nothing of it. */
  readonly nothingSent: boolean;
  /** What to do, where it is not about the server itself. */
  readonly hint: string | undefined;

  constructor(message: string, nothingSent: boolean, hint?: string) {
    super(message);
    this.name = "RequestFailure";
    this.nothingSent = nothingSent;
    this.hint = hint;
  }
}

/** What is sent. */
export interface HttpRequest {
  method: "GET" | "POST" | "DELETE";
  headers: Headers;
  body?: Uint8Array<ArrayBuffer>;
  /** Whether it does no harm if the server gets it twice: the runtime may send it again by itself. */
  repeatable: boolean;
  /** Whether it may be lost with a connection that was used before. It is sent once then. */
  shared?: boolean;
  signal: AbortSignal;
}

export class HttpClient {
  /** With connections that are used again, and without. */
  readonly #shared: Deno.HttpClient;
  readonly #single: Deno.HttpClient;
  readonly #proxy: ProxyChoice | undefined;
  #closed = false;

  /** Reads the certificates. A file that can't be read is told to `warn` and left out. Throws a TypeError for a proxy that is no address. */
  static async open(
    url: URL,
    env: { readonly [name: string]: string },
    warn: (message: string) => void,
  ): Promise<HttpClient> {
    return new HttpClient(proxyFor(url, env), await certificatesOf(env, warn));
  }

  private constructor(proxy: ProxyChoice | undefined, certificates: string[]) {
    this.#proxy = proxy;
    const way = { proxy, certificates };
    this.#shared = httpClientFor(way, { poolIdleTimeout: IDLE_MS_MAX });
    this.#single = httpClientFor(way, { poolIdleTimeout: IDLE_MS_MAX, poolMaxIdlePerHost: 0 });
  }

  /**
   * The response, whatever its status; a redirect out of the origin comes as it is.
   *
   * Rejects with a {@link RequestFailure}, or with the signal's reason once it has aborted.
   */
  async request(url: URL, request: HttpRequest): Promise<Response> {
    let address = url;
    for (let redirects = 0;; redirects += 1) {
      const response = await this.#send(address, request);
      const target = redirectOf(response, address, request.method);
      if (target === undefined || redirects >= REDIRECTS_MAX) return response;
      await response.body?.cancel();
      address = target;
    }
  }

  /** Idempotent; requests under way are to be aborted by their signals. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#shared.close();
    this.#single.close();
  }

  async #send(address: URL, request: HttpRequest): Promise<Response> {
    const { method, headers, body, signal, repeatable, shared = false } = request;
    try {
      return await fetch(address, {
        method,
        headers,
        // Of a Blob's stream the runtime keeps no copy.
        ...(body === undefined ? {} : { body: repeatable ? body : new Blob([body]) }),
        signal,
        redirect: "manual",
        client: repeatable || shared ? this.#shared : this.#single,
      });
    } catch (thrown) {
      if (request.signal.aborted) throw request.signal.reason;
      throw this.#failure(thrown);
    }
  }

  /** The runtime's message has the address in it, which may hold secrets: only its last part is used. */
  #failure(thrown: unknown): RequestFailure {
    const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
    const text = cause instanceof Error ? cause.message : String(cause);
    const [, kind, told] = /client error \((\w+)\)(?:: (.*))?$/s.exec(text) ?? [];
    const detail = told?.replace(/^tcp connect error: /, "").replace(/ \(os error \d+\)$/, "");
    const through = this.#proxy === undefined ? "" : " through the proxy of the environment";
    if (kind === "Connect") {
      return new RequestFailure(
        `it can't be reached${through}: ${detail ?? "no reason given"}`,
        true,
        this.#hintFor(detail ?? ""),
      );
    }
    if (/Requests to port \d+ are blocked$/.test(text)) {
      return new RequestFailure(
        "no request is made to its port: it belongs to another protocol",
        true,
      );
    }
    return new RequestFailure(
      `the request broke off${through}: ${detail ?? "no reason given"}`,
      false,
    );
  }

  #hintFor(detail: string): string | undefined {
    if (/\bcertificate\b/.test(detail)) return CERTIFICATE_HINT;
    return this.#proxy === undefined ? undefined : PROXY_HINT;
  }
}

/** Where a redirect within the origin leads; a POST is only repeated where the status says so. */
function redirectOf(response: Response, from: URL, method: string): URL | undefined {
  const { status } = response;
  const follows = status === 307 || status === 308 ||
    (method === "GET" && (status === 301 || status === 302 || status === 303));
  const location = follows ? response.headers.get("location") : null;
  const target = location === null ? null : URL.parse(location, from);
  return target !== null && target.origin === from.origin ? target : undefined;
}
