/** A connection to one server as the session sees it: an SDK transport that can say why it ended. */
import type { JSONRPCMessage, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import type { ErrorCode, SysError } from "../base/errors.ts";

/** How a message is sent. */
export interface SendOptions extends TransportSendOptions {
  /** Whether who sends it makes the request again where its outcome is unknown. */
  repeatable?: boolean;
}

/**
 * **Contract.** `onmessage` and `onclose` may be set anew at any time. A write that fails ends the connection within a second, or concerns its own message alone (HTTP); then `onlost` is told of a request. `onclose` is called exactly once, after the last message, however the connection ended. `send` rejects with a {@link SendError}. `close` never rejects, is bounded and idempotent; afterwards nothing of the server is left.
 */
export interface ServerConnection extends Transport {
  /** Why the connection is over, a clause such as `it exited with code 1`; undefined while it is open. */
  readonly ended: string | undefined;
  send(message: JSONRPCMessage, options?: SendOptions): Promise<void>;
  /** The only era of its transport, where that is older than the other one. */
  readonly era?: "legacy" | undefined;
  /** The code of the error that the end is, where it isn't DEVICE_DISCONNECTED: SESSION_EXPIRED, UNAUTHENTICATED. */
  readonly endedCode?: ErrorCode | undefined;
  /** How long the server asked to be left alone, milliseconds from its answer on (Retry-After). */
  readonly retryAfterMs?: number | undefined;
  /** What to do about a server that ended or answered oddly, where that isn't what holds for one on stdio. */
  readonly hint?: string | undefined;
  /** Told when no answer to a request can come any more though the connection goes on: its own stream ended. */
  onlost?: ((id: string | number, why: string) => void) | undefined;
  /** Output that was no message: the first line of it. */
  readonly firstNoise: string | undefined;
  /** Told while a message is handed on, by who takes it: nobody wanted it. The first time, `note` goes to the server's log. */
  unwanted?(note?: string): void;
  /** The last lines of the server's stderr, redacted. */
  lastLines(): string[];
  /** Resolves once all of stderr has been read, or shortly after the server's end. */
  drained(): Promise<void>;
}

/** A message that could not be sent. */
export class SendError extends Error {
  /** Whether it is certain that the server got nothing it could act on. */
  readonly nothingSent: boolean;

  constructor(message: string, nothingSent: boolean, cause?: SysError | unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "SendError";
    this.nothingSent = nothingSent;
  }
}
