/**
 * Asks a person what became of a call whose outcome is unknown.
 *
 * One question at a time, each with a limit; no answer, or no sense in three of them, is no decision: the run suspends and nothing is sent.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { UnknownCall, UnknownDecision } from "../base/operations.ts";
import { elapsed } from "./amounts.ts";
import { jsonResult } from "./flag_values.ts";
import type { Input } from "./input.ts";
import type { Output } from "./output.ts";
import { oneLine } from "./plain_text.ts";

/** How long a person may think. */
export const ANSWER_MS_MAX = 10 * 60 * 1000;
const ANSWERS_MAX = 3;

const CHOICES = `  r  retry: send it again
  d  done: it did happen; "d JSON" gives its result
  s  skip: tell the model that the outcome is unknown
  f  fail: end the run
  (anything later: just press Enter)
`;

/** Who else writes to the terminal is silent from `take` to `giveBack`. */
export interface Floor {
  take(): void;
  giveBack(): void;
}

export class Questioner {
  readonly #input: Input;
  readonly #output: Output;
  readonly #clock: Clock;
  readonly #floor: Floor;
  #last: Promise<unknown> = Promise.resolve();

  constructor(input: Input, output: Output, clock: Clock, floor: Floor) {
    this.#input = input;
    this.#output = output;
    this.#clock = clock;
    this.#floor = floor;
  }

  /** Never rejects; undefined: no decision. */
  decide(call: UnknownCall, signal: AbortSignal): Promise<UnknownDecision | undefined> {
    const answer = this.#last.then(() => this.#ask(call, signal));
    this.#last = answer;
    return answer;
  }

  async #ask(call: UnknownCall, signal: AbortSignal): Promise<UnknownDecision | undefined> {
    if (signal.aborted) return undefined;
    this.#floor.take();
    const limit = new AbortController();
    const forget = this.#clock.after(ANSWER_MS_MAX, () => limit.abort());
    try {
      this.#output.write(questionText(call));
      for (let tries = 0; tries < ANSWERS_MAX; tries++) {
        this.#output.write("decide [r/d/s/f]: ");
        const line = await this.#input.line(AbortSignal.any([signal, limit.signal]));
        if (line === undefined) {
          const late = limit.signal.aborted ? ` in ${elapsed(ANSWER_MS_MAX)}` : "";
          this.#output.write(`\nno answer${late}: left undecided\n`);
          return undefined;
        }
        if (line.trim() === "") return undefined;
        const decision = this.#read(line.trim());
        if (decision !== undefined) return decision;
      }
      this.#output.write("left undecided\n");
      return undefined;
    } finally {
      forget();
      this.#floor.giveBack();
    }
  }

  #read(line: string): UnknownDecision | undefined {
    const [word = "", ...rest] = line.split(/\s+/);
    const result = rest.length === 0 ? undefined : line.slice(word.length).trim();
    if (["d", "done"].includes(word)) {
      if (result === undefined) return { how: "done" };
      try {
        return { how: "done", result: jsonResult(result) };
      } catch (thrown) {
        if (thrown instanceof SysError) this.#output.write(`${thrown.message}\n`);
        return undefined;
      }
    }
    if (result === undefined) {
      if (["r", "retry"].includes(word)) return { how: "retry" };
      if (["s", "skip"].includes(word)) return { how: "skip" };
      if (["f", "fail"].includes(word)) return { how: "fail" };
    }
    this.#output.write(CHOICES);
    return undefined;
  }
}

function questionText(call: UnknownCall): string {
  const attempt = call.attempt > 1 ? `, attempt ${call.attempt}` : "";
  const what = oneLine(`${call.call} ${call.tool} (${call.effect}${attempt})`);
  return `Outcome unknown: ${what}\n  cause: ${oneLine(call.cause)}\n${CHOICES}`;
}
