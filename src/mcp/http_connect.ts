/**
 * A connection to a server at an address: over the transport that the launch names, or the one it turns out to speak.
 *
 * Without a name Streamable HTTP is tried first. Where `initialize` is answered as only a server of the old transport would, a GET decides: if its stream names an address for messages, the same connection goes on over that. What worked is remembered by its owner, so that a reconnect doesn't try again.
 */
import type { JSONRPCMessage, TransportSendOptions } from "@modelcontextprotocol/client";
import { sleep } from "../base/clock.ts";
import { type ErrorCode, SysError } from "../base/errors.ts";
import type { ServerConnection } from "./connection.ts";
import { HttpClient } from "./http_client.ts";
import { headersOf, type HttpDeps, textOf } from "./http_connection.ts";
import { HttpSendError } from "./http_refusal.ts";
import { HttpTransport } from "./http_transport.ts";
import type { HttpLaunch } from "./launch.ts";
import { SseTransport } from "./sse_transport.ts";

/** Transports that worked, by address. */
export type TransportMemory = Map<string, "http" | "sse">;

/** How long a GET may take to name the address for messages. */
const ENDPOINT_MS_MAX = 5_000;

/** Makes the connection; nothing is sent yet. Throws INVALID for an address, header or proxy that can't be used. */
export async function connectHttp(
  launch: HttpLaunch,
  memory: TransportMemory,
  deps: HttpDeps,
): Promise<ServerConnection> {
  const url = URL.parse(launch.url);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new SysError(
      "INVALID",
      `The url of server "${launch.server}" is no http or https address`,
    );
  }
  headersOf(launch);
  const open = async (): Promise<HttpClient> => {
    try {
      return await HttpClient.open(url, launch.env, (text) => void deps.log.note(`[rnix] ${text}`));
    } catch (thrown) {
      throw new SysError(
        "INVALID",
        `Server "${launch.server}" can't be reached: ${textOf(thrown)}`,
        {
          cause: thrown,
          hint: "Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
        },
      );
    }
  };
  const transport = launch.transport === "auto" ? memory.get(launch.url) : launch.transport;
  if (transport === "sse") return new SseTransport(launch, await open(), deps);
  const first = new HttpTransport(launch, await open(), deps);
  if (transport === "http") return first;
  return new AutoConnection(first, {
    openSse: async () => new SseTransport(launch, await open(), deps),
    worked: (name) => memory.set(launch.url, name),
    deps,
  });
}

interface AutoOptions {
  openSse(): Promise<SseTransport>;
  worked(transport: "http" | "sse"): void;
  deps: HttpDeps;
}

/** Streamable HTTP until `initialize` shows that it isn't; then HTTP+SSE, if the server speaks that. */
class AutoConnection implements ServerConnection {
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  readonly firstNoise: undefined;
  readonly #options: AutoOptions;
  readonly #first: HttpTransport;
  #inner: HttpTransport | SseTransport;
  #onmessage: ServerConnection["onmessage"];
  #onlost: ServerConnection["onlost"];
  #settled = false;
  /** The old transport while it is tried. */
  #trial: SseTransport | undefined;
  #closed = false;

  constructor(first: HttpTransport, options: AutoOptions) {
    this.#first = first;
    this.#inner = first;
    this.#options = options;
    this.#adopt(first);
  }

  get onmessage(): ServerConnection["onmessage"] {
    return this.#onmessage;
  }

  set onmessage(take: ServerConnection["onmessage"]) {
    this.#onmessage = take;
    this.#inner.onmessage = take;
  }

  get onlost(): ServerConnection["onlost"] {
    return this.#onlost;
  }

  set onlost(tell: ServerConnection["onlost"]) {
    this.#onlost = tell;
    this.#inner.onlost = tell;
  }

  get hasPerRequestStream(): boolean {
    return this.#inner === this.#first;
  }

  get ended(): string | undefined {
    return this.#inner.ended;
  }

  get endedCode(): ErrorCode | undefined {
    return this.#inner.endedCode;
  }

  get hint(): string {
    return this.#inner.hint;
  }

  get retryAfterMs(): number | undefined {
    return this.#inner.retryAfterMs;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  unwanted(note?: string): void {
    this.#inner.unwanted(note);
  }

  lastLines(): string[] {
    return this.#inner.lastLines();
  }

  drained(): Promise<void> {
    return this.#inner.drained();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (this.#settled || !("method" in message) || message.method !== "initialize") {
      return await this.#inner.send(message, options);
    }
    // While it is open which transport it is, a lost answer isn't lost yet.
    const id = "id" in message ? message.id : undefined;
    const lost: string[] = [];
    this.#first.onlost = (lostId, why) => {
      if (lostId === id) lost.push(why);
      else this.#onlost?.(lostId, why);
    };
    try {
      await this.#first.send(message, options);
      this.#settled = true;
      this.#options.worked("http");
    } catch (thrown) {
      const sse = await this.#secondTry(thrown);
      if (sse !== undefined) return await sse.send(message);
      throw thrown;
    } finally {
      if (this.#inner === this.#first) {
        this.#first.onlost = this.#onlost;
        if (id !== undefined) { for (const why of lost) this.#onlost?.(id, why); }
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#inner.close(), this.#first.close(), this.#trial?.close()]);
  }

  /** The old transport, if the failure hints at it and a GET confirms it. */
  async #secondTry(thrown: unknown): Promise<SseTransport | undefined> {
    if (!(thrown instanceof HttpSendError) || !thrown.tellsLegacy || this.#closed) return undefined;
    const { clock } = this.#options.deps;
    const sse = await this.#options.openSse();
    this.#trial = sse;
    const stop = new AbortController();
    const limit = sleep(clock, ENDPOINT_MS_MAX, stop.signal).then(() => {
      throw new Error("no address came");
    });
    limit.catch(() => {});
    if (!this.#closed) await sse.start();
    const confirmed = await Promise.race([sse.ready, limit]).then(() => true, () => false);
    stop.abort();
    if (!confirmed || this.#closed || this.#inner.ended !== undefined) {
      await sse.close();
      return undefined;
    }
    this.#first.onclose = undefined;
    this.#first.onlost = undefined;
    this.#inner = sse;
    this.#settled = true;
    this.#adopt(sse);
    this.#options.worked("sse");
    await this.#first.close("it goes on over HTTP+SSE");
    return sse;
  }

  #adopt(inner: HttpTransport | SseTransport): void {
    if (this.#onmessage !== undefined) inner.onmessage = this.#onmessage;
    inner.onlost = this.#onlost;
    inner.onclose = () => this.onclose?.();
  }
}
