/**
 * How much of a model's answer is taken at all: a server that never stops must not take the daemon's memory, and with it every other run.
 *
 * Of an error only the beginning counts, so the rest is left unread. A reply over its limit is no reply: whoever asked is told, and the same request isn't made again. The limits lie far above what any model says.
 */
import { SysError } from "../../base/errors.ts";

/** What of an error's body is read, bytes. */
export const ERROR_BYTES_MAX = 256 * 1024;
/** A reply as it comes over the wire, bytes: most of that is wrapping around each piece. */
export const REPLY_BYTES_MAX = 256 * 1024 * 1024;
/** Text, thoughts and arguments of one reply, UTF-16 units. */
export const REPLY_CHARS_MAX = 8 * 1024 * 1024;

const FIRST_ERROR_STATUS = 400;
const BYTES_PER_MIB = 1024 * 1024;

/** The same answer with a body that ends (of an error), or fails with RESOURCE_EXHAUSTED (of a reply), at the limit. `onOver` is told that error before. */
export function limitBody(response: Response, onOver: (error: SysError) => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const isError = status >= FIRST_ERROR_STATUS;
  const limited = body.pipeThrough(isError ? beginning() : bounded(onOver));
  return new Response(limited, { status, statusText, headers });
}

/** RESOURCE_EXHAUSTED, for a reply over a limit given in words. */
export function replyTooLong(limit: string): SysError {
  return new SysError("RESOURCE_EXHAUSTED", `The model's reply doesn't end: it is over ${limit}`, {
    hint: 'Check "base_url" and "preferred" under "models": no model says so much at once',
  });
}

function beginning(): TransformStream<Uint8Array, Uint8Array> {
  let left = ERROR_BYTES_MAX;
  return new TransformStream({
    transform(bytes, controller) {
      controller.enqueue(bytes.subarray(0, left));
      left -= Math.min(left, bytes.length);
      if (left === 0) controller.terminate();
    },
  });
}

function bounded(onOver: (error: SysError) => void): TransformStream<Uint8Array, Uint8Array> {
  let left = REPLY_BYTES_MAX;
  return new TransformStream({
    transform(bytes, controller) {
      left -= bytes.length;
      if (left >= 0) return controller.enqueue(bytes);
      const error = replyTooLong(`${REPLY_BYTES_MAX / BYTES_PER_MIB} MiB`);
      onOver(error);
      throw error;
    },
  });
}
