/** One use of the VFS over the socket: the daemon says that it is alive until the answer is there. A client that goes gives up waiting, which cancels a write. */
import type { VfsAnswer } from "../base/vfs_operations.ts";
import type { VfsLine } from "../base/wire.ts";
import { beat, type ConnectionOptions } from "./connection.ts";
import { failureAnswer } from "./failure_answer.ts";
import { LineQueue } from "./line_queue.ts";

/** Answers with what `work` gives. The body is what the client reads. */
export function answerVfs(
  work: (signal: AbortSignal) => Promise<VfsAnswer>,
  options: Pick<ConnectionOptions, "clock" | "aliveMs" | "onOver">,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const lines = new LineQueue<VfsLine>();
  const gone = new AbortController();
  lines.onGone = () => gone.abort();
  const stopBeating = beat(lines, options);
  work(gone.signal)
    .then((answer) => lines.end({ line: "answer", answer }))
    .catch((thrown) => lines.end({ line: "error", ...failureAnswer(thrown) }))
    .finally(() => {
      stopBeating();
      options.onOver();
    });
  return lines.body;
}
