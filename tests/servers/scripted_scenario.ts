/**
 * The language in which tests say how an MCP server behaves, misbehaviour included: plain data, the same over stdio and over HTTP.
 *
 * A scenario has a step per method; a method without one is answered as a plain server would. What only one transport can do is marked so and passed over by the other.
 */
import type { Fields, Value } from "./rpc_stdio.ts";

/** What is done on one request, in the order of the members. An answer is sent whether or not the call was cancelled. */
export interface Step {
  /** How many uses this step is good for before `then` takes over (default 1); the last step stays. */
  uses?: number;
  /** The n-th use takes the n-th. */
  then?: Step;
  /** `blockMs` holds up the whole server, requests of others included. */
  delayMs?: number;
  blockMs?: number;
  /** A file that gets a line (`METHOD NAME KEY`), synced, before anything is said: lines = times it was done. */
  ledger?: string;
  /** stdio: lines on stderr, bytes on stderr, a line on stdout that is no message, bytes on stdout without a newline. */
  stderr?: string;
  stderrBytes?: number;
  noise?: string;
  floodBytes?: number;
  /** Messages as they are, before the answer: notifications, answers nobody asked for. */
  send?: Fields[];
  /** A notification before the answer. */
  notify?: string;
  /** What tools/list gives from here on; tell of it with `notify`. */
  tools?: Value[];
  /** Progress notifications, `everyMs` apart. */
  progress?: { everyMs: number; count: number };
  /** Requests to the client, one after the other; the text of the result is the JSON of its answer (of the list of them, where it is a list). */
  ask?: Ask | Ask[];
  /** stdio: shuts stdin before anything is said, so that later writes of the client find a closed pipe. */
  closeStdin?: boolean;
  /** HTTP: see there. */
  http?: HttpStep;
  /** The last thing done: the first of these that is there. */
  exit?: number;
  silent?: boolean;
  result?: Value;
  error?: { code: number; message: string; data?: Value };
  /** Text of a plain result, `textTimes` times over. */
  text?: string;
  textTimes?: number;
  /** How often the answer is sent (default 1). */
  answers?: number;
  /** Ends the server once the answer is out. */
  exitAfter?: number;
}

export interface Ask {
  method: string;
  params?: Fields;
}

/** How a POST (or GET, DELETE) is answered where it isn't 200 with the answer. */
export interface HttpStep {
  /** The session is forgotten before anything else: 404 by the rules. */
  forget?: boolean;
  /** Before the first byte of the answer. */
  headersAfterMs?: number;
  /** The socket is reset, or closed, when the request has been read. */
  socket?: "reset" | "close";
  /** In place of 200; with `error` of the step its JSON is the body, else `body`. */
  status?: number;
  headers?: { [name: string]: string };
  body?: string;
  /** A body that never ends: so many bytes every millisecond. */
  endlessBytes?: number;
  /** The form of the answer; a stream anyway where something is sent before it. */
  form?: "json" | "sse";
  /** The connection is closed after each answer, without a word. */
  closeAfter?: boolean;
  /** Events before the answer, as they are on the wire (`: ping`, `id: 1\ndata:`). */
  events?: string[];
  /** The stream is over before the answer: cleanly, or by a broken socket. */
  cut?: "end" | "reset";
  /** After a cut: the answer comes on the next GET that has a Last-Event-ID, or on any. */
  answerOnGet?: boolean;
  /** A GET stream is closed after this. */
  endAfterMs?: number;
}

/** What holds for a scenario over HTTP. */
export interface HttpScenario {
  /** `legacy`: HTTP+SSE of 2024-11-05. */
  kind?: "streamable" | "legacy";
  /** Whether `initialize` begins a session (default true; a server of 2026-07-28 has none). */
  session?: boolean;
  /** The form of answers without anything before them (default json). */
  form?: "json" | "sse";
  /** Events with their JSON over several data lines. */
  dataLines?: boolean;
  /** Whether GET gives a stream (default: 405). */
  stream?: boolean;
  /** legacy: what a POST to the stream's address is answered with (default 405), and the endpoint that the stream names. */
  postStatus?: number;
  endpoint?: string;
}

export interface Scenario {
  /** `legacy` knows no server/discover, `modern` no initialize. */
  era?: "legacy" | "modern";
  protocolVersion?: string;
  capabilities?: Fields;
  tools?: Value[];
  /** Pages of tools/list by position, whatever the cursor says; past the end the last one comes again. */
  pages?: { tools: Value[]; nextCursor?: string }[];
  /** Pages without end: always a new cursor, with the same tools or with a new one each time. */
  endlessPages?: "same-tools" | "new-tools";
  /** Whether a server of 2026-07-28 takes subscriptions; it then tells of changes to nobody else. */
  subscriptions?: boolean;
  start?: Step;
  /** By method, or `tools/call:NAME`; over HTTP also `GET`, `DELETE`, and `POST` for one to the stream's address of a legacy server. */
  on?: { [method: string]: Step };
  /** A file that gets every message received, one a line. */
  record?: string;
  /** A file that gets a line per start; the n-th start plays the n-th of `lives` over the rest of the scenario. */
  starts?: string;
  lives?: Scenario[];
  idsAsText?: boolean;
  /** Every message comes in a list of its own, as batches of 2025-03-26 do. */
  batches?: boolean;
  http?: HttpScenario;
  /** stdio: its process. */
  ignoreTerm?: boolean;
  ignoreEof?: boolean;
  /** The shape of stdout or of an event stream: pieces of so many bytes, `\r\n`. */
  chunkBytes?: number;
  crlf?: boolean;
  /** stdio: all messages of so many milliseconds in one write. */
  mergeMs?: number;
}

/** The step that the n-th use (from 0) of a chain takes. */
export function stepOfUse(first: Step, use: number): Step {
  let step = first;
  for (let left = use; step.then !== undefined; step = step.then) {
    left -= step.uses ?? 1;
    if (left < 0) break;
  }
  return step;
}
