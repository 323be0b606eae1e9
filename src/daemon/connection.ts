/** One client that follows a run over the socket: events and questions out, answers in, and what its going means. */
import type { Clock } from "../base/clock.ts";
import type {
  RunHandle,
  RunObserver,
  TrustQuestion,
  UnknownCall,
  UnknownDecision,
} from "../base/operations.ts";
import { ALIVE_MS, type Question, type RunLine } from "../base/wire.ts";
import { failureAnswer } from "./failure_answer.ts";
import { LineQueue } from "./line_queue.ts";

export type Answer = UnknownDecision | boolean | null;

/** Where questions can be put. */
interface QuestionLines {
  push(
    line: { line: "question"; id: string; question: Question } | { line: "withdrawn"; id: string },
  ): void;
}

/** Questions that wait for an answer, over all connections. */
export class Questions {
  readonly #open = new Map<string, (answer: Answer) => void>();

  /** Whether the question was still open. */
  answer(id: string, answer: Answer): boolean {
    const settle = this.#open.get(id);
    this.#open.delete(id);
    settle?.(answer);
    return settle !== undefined;
  }

  /** Asks over `lines`; null when nobody answers before `signal` aborts. */
  ask(lines: QuestionLines, question: Question, signal: AbortSignal): Promise<Answer> {
    const id = crypto.randomUUID();
    return new Promise((resolve) => {
      const withdraw = () => {
        lines.push({ line: "withdrawn", id });
        this.answer(id, null);
      };
      this.#open.set(id, (answer) => {
        signal.removeEventListener("abort", withdraw);
        resolve(answer);
      });
      if (signal.aborted) return withdraw();
      signal.addEventListener("abort", withdraw, { once: true });
      lines.push({ line: "question", id, question });
    });
  }
}

export interface ConnectionOptions {
  clock: Clock;
  /** In place of `ALIVE_MS`. */
  aliveMs?: number;
  questions: Questions;
  /** Whether a person can be asked over it. */
  interactive: boolean;
  /** What to do with the run when the client goes before its end. */
  onGone(handle: RunHandle): void;
  /** Called once, when the connection is over. */
  onOver(): void;
}

/** Says that the daemon is alive, again and again until the returned function is called. */
export function beat(
  lines: { alive(): void },
  { clock, aliveMs = ALIVE_MS }: Pick<ConnectionOptions, "clock" | "aliveMs">,
): () => void {
  let cancel = () => {};
  const wait = () => {
    cancel = clock.after(aliveMs, () => {
      lines.alive();
      wait();
    });
  };
  wait();
  return () => cancel();
}

/** Follows what `start` gives. The body is what the client reads: the first line says whether there is a run. */
export function followRun(
  start: (observer: RunObserver) => Promise<RunHandle>,
  options: ConnectionOptions,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const lines = new LineQueue<RunLine>();
  const gone = new AbortController();
  let handle: RunHandle | undefined;
  let over = false;
  const stopBeating = beat(lines, options);
  const end = () => {
    if (!over) options.onOver();
    over = true;
    stopBeating();
  };
  lines.onGone = () => {
    gone.abort();
    if (handle !== undefined) options.onGone(handle);
    end();
  };
  const work = async () => {
    handle = await start(observerOf(lines, gone.signal, options));
    if (gone.signal.aborted) options.onGone(handle);
    lines.push({ line: "accepted", pid: handle.pid, run_id: handle.runId });
    lines.end({ line: "report", report: await handle.done });
  };
  work().catch((thrown) => lines.end({ line: "error", ...failureAnswer(thrown) }))
    .finally(end);
  return lines.body;
}

function observerOf(
  lines: LineQueue<RunLine>,
  gone: AbortSignal,
  { questions, interactive }: ConnectionOptions,
): RunObserver {
  const observer: RunObserver = { onEvent: (event) => lines.event({ line: "event", event }) };
  if (!interactive) return observer;
  return {
    ...observer,
    async decideUnknown(call: UnknownCall, signal: AbortSignal) {
      const ended = AbortSignal.any([signal, gone]);
      const answer = await questions.ask(lines, { kind: "unknown", call }, ended);
      return typeof answer === "object" && answer !== null ? answer : undefined;
    },
    async confirmTrust(question: TrustQuestion) {
      return await questions.ask(lines, { kind: "trust", question }, gone) === true;
    },
  };
}
