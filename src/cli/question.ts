/**
 * Asks a person: what became of a call whose outcome is unknown, and whether an agent of the project may run.
 *
 * One question at a time, each with a limit; no answer, or no sense in three of them, is no decision: the run suspends and nothing is sent.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { TrustQuestion, UnknownCall, UnknownDecision } from "../base/operations.ts";
import { elapsed } from "./amounts.ts";
import { jsonResult } from "./flag_values.ts";
import type { Input } from "./input.ts";
import type { Output } from "./output.ts";
import { oneLine } from "./plain_text.ts";
import { causeText } from "./report.ts";

/** How long a person may think. */
export const ANSWER_MS_MAX = 10 * 60 * 1000;
const ANSWERS_MAX = 3;
/** Reason of the abort that ends a question after its limit. */
const LATE = "late";

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
  readonly #over = new AbortController();
  #last: Promise<unknown> = Promise.resolve();

  constructor(input: Input, output: Output, clock: Clock, floor: Floor) {
    this.#input = input;
    this.#output = output;
    this.#clock = clock;
    this.#floor = floor;
  }

  /** Never rejects; undefined: no decision. */
  decide(call: UnknownCall, signal: AbortSignal): Promise<UnknownDecision | undefined> {
    return this.#inTurn(signal, (ended) => this.#askOutcome(call, ended));
  }

  /** Never rejects; anything but a yes is a no. */
  async confirmTrust(question: TrustQuestion): Promise<boolean> {
    const answer = await this.#inTurn(this.#over.signal, async (ended) => {
      this.#output.write(trustText(question));
      const line = await this.#input.line(ended);
      if (line === undefined) this.#output.write("\n");
      return /^y(es)?$/i.test(line?.trim() ?? "");
    });
    return answer ?? false;
  }

  /** Takes every open question, and all later ones, as unanswered. */
  giveUp(): void {
    this.#over.abort();
  }

  /** One question after another, each with its limit. */
  #inTurn<T>(
    signal: AbortSignal,
    ask: (ended: AbortSignal) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const answer = this.#last.then(async () => {
      if (signal.aborted || this.#over.signal.aborted) return undefined;
      this.#floor.take();
      const limit = new AbortController();
      const forget = this.#clock.after(ANSWER_MS_MAX, () => limit.abort(LATE));
      try {
        return await ask(AbortSignal.any([signal, limit.signal, this.#over.signal]));
      } finally {
        forget();
        this.#floor.giveBack();
      }
    });
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #askOutcome(call: UnknownCall, ended: AbortSignal): Promise<UnknownDecision | undefined> {
    this.#output.write(questionText(call));
    for (let tries = 0; tries < ANSWERS_MAX; tries++) {
      this.#output.write("decide [r/d/s/f]: ");
      const line = await this.#input.line(ended);
      if (line === undefined) {
        const late = ended.reason === LATE ? ` in ${elapsed(ANSWER_MS_MAX)}` : "";
        this.#output.write(`\nno answer${late}: left undecided\n`);
        return undefined;
      }
      if (line.trim() === "") return undefined;
      const decision = this.#read(line.trim());
      if (decision !== undefined) return decision;
    }
    this.#output.write("left undecided\n");
    return undefined;
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
  return `Outcome unknown: ${what}\n  cause: ${oneLine(causeText(call))}\n${CHOICES}`;
}

function trustText({ subject, files }: TrustQuestion): string {
  const lines = files.flatMap(({ path, state, decides, effects }) => [
    `  ${oneLine(path)} (${state}): ${oneLine(decides)}`,
    ...effects.map((effect) => `    ${oneLine(effect)}`),
  ]);
  const them = files.length === 1 ? "it" : "them";
  const what = files.length === 1
    ? "a file of this project that is not trusted as it is"
    : `${files.length} files of this project that are not trusted as they are`;
  return [
    `${oneLine(subject)} needs ${what}`,
    ...lines,
    `Use ${them}, and trust ${them} from now on? [y/N]: `,
  ].join("\n");
}
