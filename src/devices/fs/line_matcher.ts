/** A regular expression over lines of many texts, with a limit on its time: it works in a thread of its own, which can be ended. */
import { SysError } from "../../base/errors.ts";
import workerText from "./grep_worker.js" with { type: "text" };

/** How long a pattern may work on one batch, milliseconds. */
export const MATCH_MS_MAX = 10_000;

type Reply = { found: number[][] } | { fault: string };

export class LineMatcher {
  readonly #worker: Worker;
  readonly #source: string;
  readonly #flags: string;

  /** Throws INVALID for what is no pattern. */
  constructor(source: string, { ignoreCase }: { ignoreCase: boolean }) {
    this.#source = source;
    this.#flags = ignoreCase ? "iu" : "u";
    try {
      new RegExp(source, this.#flags);
    } catch (thrown) {
      // What isn't strict enough for `u` may still be a pattern.
      this.#flags = ignoreCase ? "i" : "";
      this.#checkLoose(thrown);
    }
    const url = URL.createObjectURL(new Blob([workerText], { type: "application/javascript" }));
    this.#worker = new Worker(url, { type: "module" });
    URL.revokeObjectURL(url);
  }

  /** Numbers (from 0) of the lines of each text that fit. Rejects with TIMEOUT, and when the signal aborts. */
  match(texts: readonly string[], signal: AbortSignal): Promise<number[][]> {
    const { promise, resolve, reject } = Promise.withResolvers<number[][]>();
    const stop = () => reject(new SysError("DRIVER", "The search was cancelled"));
    const late = () =>
      reject(
        new SysError("TIMEOUT", `The pattern took more than ${MATCH_MS_MAX / 1000} s`, {
          hint: "Use one without nested repetitions",
        }),
      );
    const timer = setTimeout(late, MATCH_MS_MAX);
    signal.addEventListener("abort", stop, { once: true });
    this.#worker.onmessage = ({ data }: MessageEvent<Reply>) => {
      if ("found" in data) resolve(data.found);
      else reject(new SysError("INVALID", `The pattern can't be used: ${data.fault}`));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      reject(new SysError("DRIVER", `The search failed: ${event.message}`));
    };
    this.#worker.postMessage({ source: this.#source, flags: this.#flags, texts });
    return promise.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    });
  }

  close(): void {
    this.#worker.terminate();
  }

  #checkLoose(strict: unknown): void {
    try {
      new RegExp(this.#source, this.#flags);
    } catch {
      const why = strict instanceof Error ? strict.message : String(strict);
      throw new SysError("INVALID", `The pattern can't be used: ${why}`);
    }
  }
}
