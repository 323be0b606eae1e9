/**
 * HTTP/1.1 by hand, for test servers that must misbehave below what a server library lets one do: sockets reset in mid-answer, heads that come late, bodies without end.
 *
 * Connections are kept alive as by any server; requests must have a Content-Length. A reply belongs to one request and ends once.
 */
import { Buffer } from "node:buffer";
import { createServer, type Server, type Socket } from "node:net";

export interface WireRequest {
  verb: string;
  /** Path and query. */
  target: string;
  /** Names in lower case. */
  headers: { [name: string]: string };
  body: string;
  /** Which connection it came on, from 1. */
  connection: number;
}

export interface WireHeaders {
  [name: string]: string;
}

const LETTER_A = 0x41;
const HEAD_END = "\r\n\r\n";

/** The answer to one request. */
export class WireReply {
  readonly #socket: Socket;
  readonly #over = Promise.withResolvers<void>();
  #state: "waiting" | "streaming" | "ended" = "waiting";
  /** Told when the client goes before the reply has ended. */
  onabandoned: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    const gone = () => {
      if (this.#state !== "ended") this.onabandoned?.();
      this.#finish();
    };
    socket.once("close", gone);
    this.#over.promise.then(() => socket.off("close", gone));
  }

  get state(): "waiting" | "streaming" | "ended" {
    return this.#state;
  }

  /** Resolves when the reply has ended, however. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** The whole reply at once. */
  whole(status: number, headers: WireHeaders, body: string): void {
    if (this.#state !== "waiting") return;
    const bytes = Buffer.from(body);
    this.#socket.write(headText(status, { ...headers, "content-length": String(bytes.length) }));
    this.#socket.write(bytes);
    this.#finish();
  }

  /** Begins a body in chunks. */
  begin(status: number, headers: WireHeaders): void {
    if (this.#state !== "waiting") return;
    this.#state = "streaming";
    this.#socket.write(headText(status, { ...headers, "transfer-encoding": "chunked" }));
  }

  /** Resolves when the client can take more. */
  async chunk(piece: string | Uint8Array): Promise<void> {
    if (this.#state !== "streaming" || piece.length === 0) return;
    const bytes = Buffer.from(piece);
    this.#socket.write(`${bytes.length.toString(16)}\r\n`);
    this.#socket.write(bytes);
    if (this.#socket.write("\r\n")) return;
    await Promise.race([
      new Promise<void>((resolve) => this.#socket.once("drain", () => resolve())),
      this.over,
    ]);
  }

  /** Ends a body in chunks as it should be. */
  end(): void {
    if (this.#state !== "streaming") return;
    this.#socket.write("0\r\n\r\n");
    this.#finish();
  }

  /** Ends everything in the middle of whatever it was. */
  break(how: "reset" | "close"): void {
    if (this.#state === "ended") return;
    this.#finish();
    if (how === "reset") this.#socket.resetAndDestroy();
    else this.#socket.end();
  }

  /** Closes the connection once all is written, ended or not. */
  hangUp(): void {
    this.#socket.end();
  }

  #finish(): void {
    this.#state = "ended";
    this.#over.resolve();
  }
}

/** Hands on the requests of all connections, those of one connection in turn. */
export class WireServer {
  readonly #handle: (request: WireRequest, reply: WireReply) => Promise<void> | void;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #connections = 0;

  constructor(handle: (request: WireRequest, reply: WireReply) => Promise<void> | void) {
    this.#handle = handle;
  }

  /** Listens on loopback and gives the port; 0 takes a free one. */
  async start(port: number): Promise<number> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => resolve());
    });
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("It has no port");
    return address.port;
  }

  /** Breaks all connections and takes no more: the server is down. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #serve(socket: Socket): void {
    const connection = ++this.#connections;
    let rest = Buffer.alloc(0);
    let busy: Promise<void> = Promise.resolve();
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk: Uint8Array) => {
      rest = Buffer.concat([rest, chunk]);
      // What doesn't begin like a verb isn't HTTP: TLS, for one.
      if ((rest[0] ?? LETTER_A) < LETTER_A) return void socket.destroy();
      for (let next = takeRequest(rest); next !== undefined; next = takeRequest(rest)) {
        rest = next.rest;
        const request = { ...next.request, connection };
        busy = busy.then(async () => {
          const reply = new WireReply(socket);
          await Promise.all([this.#handle(request, reply), reply.over]);
        });
      }
    });
  }
}

/** The first whole request in the bytes, and what is left of them. */
function takeRequest(
  bytes: Buffer<ArrayBuffer>,
): { request: Omit<WireRequest, "connection">; rest: Buffer<ArrayBuffer> } | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const [first = "", ...lines] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  const [verb = "", target = ""] = first.split(" ");
  const headers: WireHeaders = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const bodyStart = headEnd + HEAD_END.length;
  const bodyEnd = bodyStart + Number(headers["content-length"] ?? 0);
  if (bytes.length < bodyEnd) return undefined;
  const body = bytes.subarray(bodyStart, bodyEnd).toString("utf8");
  return { request: { verb, target, headers, body }, rest: Buffer.from(bytes.subarray(bodyEnd)) };
}

function headText(status: number, headers: WireHeaders): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Scripted\r\n${lines.join("")}\r\n`;
}
