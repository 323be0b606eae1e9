/**
 * Patterns that a model gives, at work in a thread of their own: regular expressions over lines, globs over paths.
 *
 * Either kind can take for ever (nested repetitions, braces that multiply), so nothing of them runs where the daemon's other runs do. The thread has a limit for each question and for all of one call together, and can be ended at any moment.
 */
import { SysError } from "../../base/errors.ts";
import workerText from "./pattern_worker.js" with { type: "text" };

/** How long a pattern may work on one question, milliseconds. */
export const MATCH_MS_MAX = 10_000;
/** And on all questions of one call. */
const CALL_MS_MAX = 60_000;

type Question =
  | { source: string; flags: string; texts: readonly string[] }
  | { glob: string; paths: readonly string[] };
type Reply<Found> = { found: Found[] } | { fault: string };

/** One thread, for one call. `close` it when the call is over. */
export class PatternThread {
  readonly #worker: Worker;
  #workedMs = 0;

  constructor() {
    const url = URL.createObjectURL(new Blob([workerText], { type: "application/javascript" }));
    this.#worker = new Worker(url, { type: "module" });
    URL.revokeObjectURL(url);
  }

  /** Whether each path fits a glob. Rejects as `lines`. */
  paths(glob: string, paths: readonly string[], signal: AbortSignal): Promise<boolean[]> {
    return this.#ask<boolean>({ glob, paths }, signal);
  }

  /** Numbers (from 0) of the lines of each text that fit. Rejects with TIMEOUT, with INVALID for what can't be used, and when the signal aborts. */
  lines(
    pattern: LinePattern,
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<number[][]> {
    return this.#ask<number[]>({ ...pattern, texts }, signal);
  }

  close(): void {
    this.#worker.terminate();
  }

  #ask<Found>(question: Question, signal: AbortSignal): Promise<Found[]> {
    const { promise, resolve, reject } = Promise.withResolvers<Found[]>();
    const stop = () => reject(new SysError("DRIVER", "The search was cancelled"));
    if (signal.aborted) stop();
    const limitMs = Math.min(MATCH_MS_MAX, CALL_MS_MAX - this.#workedMs);
    const beganMs = performance.now();
    const timer = setTimeout(() => reject(tooLong(this.#workedMs + limitMs, question)), limitMs);
    signal.addEventListener("abort", stop, { once: true });
    this.#worker.onmessage = ({ data }: MessageEvent<Reply<Found>>) => {
      if ("found" in data) resolve(data.found);
      else reject(new SysError("INVALID", `The pattern can't be used: ${data.fault}`));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      reject(new SysError("DRIVER", `The search failed: ${event.message}`));
    };
    this.#worker.postMessage(question);
    return promise.finally(() => {
      this.#workedMs += performance.now() - beganMs;
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    });
  }
}

function tooLong(limitMs: number, question: Question): SysError {
  return new SysError("TIMEOUT", `The pattern took more than ${Math.round(limitMs / 1000)} s`, {
    hint: "glob" in question
      ? "Use one with fewer braces and repetitions"
      : "Use one without nested repetitions, or look in fewer files",
  });
}

/** A regular expression that can be used. */
export interface LinePattern {
  source: string;
  flags: string;
}

/** Throws INVALID for what is no pattern. */
export function linePattern(source: string, { ignoreCase }: { ignoreCase: boolean }): LinePattern {
  const loose = ignoreCase ? "i" : "";
  const strict = `${loose}u`;
  try {
    new RegExp(source, strict);
    return { source, flags: strict };
  } catch (thrown) {
    // What isn't strict enough for `u` may still be a pattern.
    if (isPattern(source, loose)) return { source, flags: loose };
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new SysError("INVALID", `The pattern can't be used: ${why}`);
  }
}

function isPattern(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags);
    return true;
  } catch {
    return false;
  }
}
