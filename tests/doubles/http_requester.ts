/** In place of a network: gives each request to a function of the test and lets its streams be fed by hand. */
import type { HttpRequest } from "../../src/mcp/http_client.ts";
import type { Requester } from "../../src/mcp/http_connection.ts";

/** A request as the server would see it. */
export interface SeenRequest {
  method: string;
  headers: Headers;
  /** The message of a POST. */
  message: { id?: string | number; method?: string } | undefined;
  signal: AbortSignal;
  /** Whether it may go on a connection that was used before. */
  shared: boolean;
}

/** What a test answers with: a response, or a failure by throwing. */
export type Answering = (request: SeenRequest) => Response | Promise<Response>;

export class HttpRequesterDouble implements Requester {
  readonly seen: SeenRequest[] = [];
  closed = false;
  answer: Answering;

  constructor(answer: Answering) {
    this.answer = answer;
  }

  of(what: string): SeenRequest[] {
    return this.seen.filter(({ method, message }) => method === what || message?.method === what);
  }

  async request(_url: URL, sent: HttpRequest): Promise<Response> {
    const { method, headers, body, signal, repeatable, shared = false } = sent;
    const message = body === undefined ? undefined : JSON.parse(new TextDecoder().decode(body));
    const request = { method, headers, message, signal, shared: repeatable || shared };
    this.seen.push(request);
    if (signal.aborted) throw signal.reason;
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    aborted.catch(() => {});
    return await Promise.race([Promise.resolve(request).then(this.answer), aborted]);
  }

  close(): void {
    this.closed = true;
  }
}

/** A stream of events that a test feeds; the request's signal breaks it, as the runtime does. */
export class FedStream {
  readonly response: Response;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #over = false;

  constructor(signal: AbortSignal) {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.#over = true;
      },
    });
    signal.addEventListener("abort", () => this.break(String(signal.reason)), { once: true });
    this.response = new Response(stream, { headers: { "content-type": "text/event-stream" } });
  }

  /** Whether the stream was ended, by either side. */
  get over(): boolean {
    return this.#over;
  }

  put(text: string): void {
    this.#controller?.enqueue(new TextEncoder().encode(text));
  }

  message(message: object, fields = ""): void {
    this.put(`${fields}data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  }

  end(): void {
    if (!this.#over) this.#controller?.close();
    this.#over = true;
  }

  break(why: string): void {
    if (!this.#over) this.#controller?.error(new Error(why));
    this.#over = true;
  }
}
