/**
 * One request over the SDK client, its answer as it came; and a tool call with its limits and an honest outcome.
 *
 * A call is sent once. A server of 2026-07-28 that wants input first gets it with the same call again, under the same key and within the same limits: only once it has answered that it wants it, so nothing is ever on its way twice.
 */
import type { Client, StandardSchemaV1 } from "@modelcontextprotocol/client";
import type { Clock } from "../base/clock.ts";
import { sleep, TIMER_MS_MAX, within } from "../base/clock.ts";
import { formatDuration } from "../base/duration.ts";
import { SysError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Channel, RawAnswer, Tracked } from "./channel.ts";
import { SendError } from "./connection.ts";
import { InputRounds, type ServerRequests } from "./server_requests.ts";

/** `_meta` key of the idempotency key: the same for every attempt of a call, so that a server can tell a repeat. */
export const IDEMPOTENCY_KEY_META = "rnix/idempotencyKey";
/** `_meta` key of the W3C trace context, as MCP reserves it. */
export const TRACEPARENT_META = "traceparent";

/** How long a write may still fail after its connection ended. */
const WRITE_VERDICT_MS = 200;

/** Takes any result as it is: an SDK schema would drop or refuse what it doesn't know. */
const AS_IT_CAME: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "rnix", validate: (value) => ({ value }) },
};

interface RequestOptions {
  signal: AbortSignal;
  /** Whether who asks may ask again where the outcome is unknown. */
  repeatable?: boolean | undefined;
  onProgress?: (progress: { message?: string | undefined; progress: number }) => void;
}

/** Sends `method` in the client's era (its `_meta` included). Aborting the signal tells the server that the answer isn't wanted. */
export function sendRequest(
  client: Client,
  channel: Channel,
  method: string,
  params: JsonObject,
  options: RequestOptions,
): Tracked {
  const send = () =>
    client.request({ method, params }, AS_IT_CAME, {
      signal: options.signal,
      timeout: TIMER_MS_MAX,
      allowInputRequired: true,
      ...(options.onProgress === undefined ? {} : { onprogress: options.onProgress }),
    });
  return channel.track(send, { repeatable: options.repeatable === true });
}

export interface ToolCall {
  server: string;
  /** The server's own name of the tool. */
  tool: string;
  arguments: JsonObject;
  callId: string;
  idempotencyKey: string;
  traceparent?: string | undefined;
  /** Aborting cancels this call alone. */
  signal: AbortSignal;
  /** How long an answer is still awaited after a cancellation. */
  cancelGraceMs: number;
  /** Whether the caller makes it again where its outcome is unknown. */
  repeatable?: boolean | undefined;
  /** Time without answer or progress. */
  timeoutMs: number;
  /** Time in all. */
  maxTimeoutMs: number;
  onProgress?: ((message: string) => void) | undefined;
}

/** What is known of a call. `late` gives the answer if it comes after all, undefined once it can't come; it never rejects. */
export type ToolCallOutcome =
  | RawAnswer
  | { kind: "not-sent"; lost: boolean; error: SysError }
  | {
    kind: "unknown";
    cause: "timeout" | "disconnected" | "cancelled";
    error: SysError;
    late: Promise<RawAnswer | undefined>;
  };

/** Where a call goes. `inputs` gives a server of 2026-07-28 what it asks for in the middle of a call. */
export interface CallPeer {
  client: Client;
  channel: Channel;
  clock: Clock;
  inputs?: ServerRequests | undefined;
  /** What every request carries besides. */
  meta?: JsonObject | undefined;
}

/** Calls a tool once. Never throws. */
export async function callTool(
  peer: CallPeer,
  call: ToolCall,
): Promise<ToolCallOutcome> {
  if (call.signal.aborted) {
    const error = new SysError("DRIVER", `Call ${call.callId} was cancelled before it was sent`);
    return { kind: "not-sent", lost: false, error };
  }
  return await new PendingCall(peer, call).outcome;
}

class PendingCall {
  readonly outcome: Promise<ToolCallOutcome>;
  readonly #peer: CallPeer;
  readonly #clock: Clock;
  readonly #channel: Channel;
  readonly #call: ToolCall;
  readonly #stop = new AbortController();
  readonly #rounds: InputRounds;
  #tracked: Tracked;
  readonly #onCancel = () => void this.#cancel();
  readonly #endMs: number;
  /** When the server was last heard of in this call. */
  #heardMs: number;
  #cancelTimer: () => void = () => {};
  #settle: (outcome: ToolCallOutcome) => void;
  #over = false;

  constructor(peer: CallPeer, call: ToolCall) {
    this.#peer = peer;
    this.#rounds = new InputRounds(peer.inputs);
    this.#clock = peer.clock;
    this.#channel = peer.channel;
    this.#call = call;
    const { promise, resolve } = Promise.withResolvers<ToolCallOutcome>();
    this.outcome = promise;
    this.#settle = resolve;
    this.#heardMs = this.#clock.monotonic();
    this.#endMs = this.#heardMs + call.maxTimeoutMs;
    this.#tracked = this.#send({});
    call.signal.addEventListener("abort", this.#onCancel, { once: true });
    this.#armTimer(this.#heardMs);
  }

  #send(more: JsonObject): Tracked {
    const { tool, arguments: args, idempotencyKey, traceparent, repeatable } = this.#call;
    const tracked = sendRequest(this.#peer.client, this.#channel, "tools/call", {
      name: tool,
      arguments: args,
      _meta: {
        ...this.#peer.meta,
        [IDEMPOTENCY_KEY_META]: idempotencyKey,
        ...(traceparent === undefined ? {} : { [TRACEPARENT_META]: traceparent }),
      },
      ...more,
    }, {
      signal: this.#stop.signal,
      repeatable,
      onProgress: (progress) => this.#progress(progress),
    });
    tracked.sent.catch((thrown) => this.#sendFailed(thrown));
    tracked.answer.then((answer) => this.#answered(answer));
    return tracked;
  }

  /** One timer for both limits; what is heard meanwhile only moves the time that it then waits for. */
  #armTimer(nowMs: number): void {
    const dueMs = Math.min(this.#heardMs + this.#call.timeoutMs, this.#endMs);
    if (dueMs <= nowMs) return this.#timeOut();
    this.#cancelTimer = this.#clock.after(
      dueMs - nowMs,
      () => this.#armTimer(this.#clock.monotonic()),
    );
  }

  #progress(progress: { message?: string | undefined; progress: number }): void {
    if (this.#over) return;
    this.#heardMs = this.#clock.monotonic();
    this.#call.onProgress?.(progress.message ?? String(progress.progress));
  }

  #answered(answer: RawAnswer | undefined): void {
    if (answer !== undefined) return this.#goOn(answer);
    // What a cancellation ends is cancelled, not lost.
    if (this.#call.signal.aborted) return;
    // The write that failed with the connection says more; let it speak first.
    const written = this.#tracked.sent.catch(() => {});
    within(this.#clock, WRITE_VERDICT_MS, written, () => {}).then(() =>
      this.#unknown("disconnected", this.#lostError())
    );
  }

  /** The last answer, or the next round. */
  #goOn(answer: RawAnswer): void {
    const isWanted = !this.#over && !this.#stop.signal.aborted;
    const next = isWanted && answer.kind === "result"
      ? this.#rounds.next(answer.result)
      : undefined;
    if (next === undefined) return this.#end(answer);
    this.#heardMs = this.#clock.monotonic();
    const sendAgain = () => {
      if (!this.#over && !this.#stop.signal.aborted) this.#tracked = this.#send(next.params);
    };
    if (next.pauseMs === 0) sendAgain();
    else sleep(this.#clock, next.pauseMs, this.#stop.signal).then(sendAgain, () => {});
  }

  #sendFailed(thrown: unknown): void {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    // What the server did before it asked for input is not known.
    const nothingSent = !this.#rounds.begun && thrown instanceof SendError && thrown.nothingSent;
    const known = thrown instanceof SendError && thrown.cause instanceof SysError
      ? thrown.cause
      : undefined;
    const code = known?.code ?? "DEVICE_DISCONNECTED";
    const error = new SysError(code, message, { cause: thrown, hint: known?.hint });
    if (nothingSent) this.#end({ kind: "not-sent", lost: true, error });
    else this.#unknown("disconnected", error);
  }

  #lostError(): SysError {
    const { server, tool } = this.#call;
    const lost = this.#tracked.lostBecause();
    const why = lost ?? this.#channel.connection.ended ?? "the connection ended";
    const what = lost === undefined ? "Server" : "The answer of server";
    return new SysError(
      "DEVICE_DISCONNECTED",
      `${what} "${server}" was lost during a call of "${tool}": ${why}`,
    );
  }

  #timeOut(): void {
    const { server, tool, timeoutMs, maxTimeoutMs } = this.#call;
    this.#unknown(
      "timeout",
      new SysError(
        "TIMEOUT",
        `No answer from "${server}" to a call of "${tool}" (timeout ${
          formatDuration(timeoutMs)
        } without progress, max_timeout ${formatDuration(maxTimeoutMs)} in all)`,
        { hint: `Raise timeout or max_timeout of server "${server}" if the tool needs longer` },
      ),
    );
  }

  async #cancel(): Promise<void> {
    if (this.#over) return;
    this.#tracked.abandon();
    this.#stop.abort(new Error("Cancelled"));
    await within(this.#clock, this.#call.cancelGraceMs, this.#tracked.answer, () => undefined);
    const { callId, tool } = this.#call;
    this.#unknown(
      "cancelled",
      new SysError(
        "UNKNOWN_OUTCOME",
        `Call ${callId} of "${tool}" was cancelled and gave no answer`,
      ),
    );
  }

  #unknown(cause: "timeout" | "disconnected" | "cancelled", error: SysError): void {
    if (this.#over) return;
    this.#tracked.abandon();
    this.#end({ kind: "unknown", cause, error, late: this.#tracked.answer });
    this.#stop.abort(new Error(cause));
  }

  #end(outcome: ToolCallOutcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelTimer();
    this.#call.signal.removeEventListener("abort", this.#onCancel);
    this.#settle(outcome);
  }
}
