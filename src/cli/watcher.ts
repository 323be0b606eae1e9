/**
 * Tells a person on stderr what a run is doing: mounts coming up, streamed text, calls with their time.
 *
 * Text only ever grows: no cursor is moved, so it reads the same in a log. A line that was begun (`tool … `) is ended in place if nothing came in between, else told again in full.
 *
 * Where nobody watches it grow, a turn's text is told as a whole, and that of the last turn not at all if it is the result: stdout has that, and both may end up in one file.
 */
import { countText } from "../base/resource_tools.ts";
import type { ErrorBody, RunEvent, RunObserver } from "../base/operations.ts";
import { shortRunId } from "../base/ids.ts";
import { counted, elapsed } from "./amounts.ts";
import type { Loudness } from "./command.ts";
import { errorText, shortIds } from "./failure.ts";
import type { Output } from "./output.ts";
import { clipped, oneLine, PlainStream, plainText, textWidth } from "./plain_text.ts";
import { causeText } from "./report.ts";
import type { Floor } from "./question.ts";
import type { Style } from "./style.ts";

const INPUT_COLUMNS = 80;
const PREVIEW_COLUMNS = 100;
/** Of the end of a line about a call: ` →`, its time, and on a narrow terminal at least so much of the rest. */
const TIME_COLUMNS = 24;
/** Less of a text than this is left out altogether. */
const COLUMNS_MIN = 4;
/** A tool's name is never cut to less. */
const TOOL_COLUMNS_MIN = 12;
const LATER_LINES_MAX = 100;

const RANK: Record<Loudness, number> = { quiet: 0, essential: 1, full: 2, verbose: 3 };

/** Events after which what the model has said was not its last word. */
const GOES_ON: ReadonlySet<RunEvent["type"]> = new Set([
  ...["run.started", "run.resumed", "run.suspended", "model.started", "model.retrying"] as const,
  ...["context.compacting", "context.compacted"] as const,
  ...["call.started", "call.finished", "call.unknown", "call.settled"] as const,
]);

type EventOf<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>;

export class Watcher implements RunObserver, Floor {
  readonly #output: Output;
  readonly #style: Style;
  readonly #rank: number;
  readonly #columns: () => number | undefined;
  readonly #stream = new PlainStream();
  readonly #tools = new Map<string, string>();
  /** Name and pid, once the run has said them. */
  #agent: string | undefined;
  /** Nothing was heard of the run yet; what a resume settles comes before the new pid, and is told when that is known. */
  #isEarly = true;
  readonly #early: EventOf<"call.settled">[] = [];
  /** How the incarnation before ended: told only when another comes after it, else a summary says it. */
  #ended: string | undefined;
  /** What the unfinished line is about: a call, a mount, or streamed text. */
  #open: string | undefined;
  /** How wide the unfinished line about a call or a mount is. */
  #openColumns = 0;
  /** Text that was streamed in the present turn. */
  #streamed = "";
  /** Whether a turn's text waits until it is known not to be the result. */
  readonly #holdsText: boolean;
  /** Text that waits so, and what is told after it. */
  #held = "";
  #afterHeld: string[] = [];
  /** Whether a question is open. */
  #silent = false;
  /** Errors that were told, as `errorKey`. */
  readonly #errors = new Set<string>();
  /** Lines that wait for the end of a line of streamed text, or of a question. */
  #later: string[] = [];

  /** `columns`: width of the terminal, where there is one; a line about a call is cut to it. `holdsText`: the result is told elsewhere, by who then calls `finish`. */
  constructor(
    output: Output,
    style: Style,
    loudness: Loudness,
    { columns = () => undefined, holdsText = false }: {
      columns?: () => number | undefined;
      holdsText?: boolean;
    } = {},
  ) {
    this.#columns = columns;
    this.#holdsText = holdsText;
    this.#output = output;
    this.#style = style;
    this.#rank = RANK[loudness];
  }

  /** Text that was shown of the last turn, unchanged. */
  get streamedText(): string {
    return this.#streamed;
  }

  /** Whether this error was told already: a mount's that has ended the run. */
  hasTold(error: ErrorBody): boolean {
    return this.#errors.has(errorKey(error));
  }

  onEvent(event: RunEvent): void {
    if (event.type !== "call.settled" && event.type !== "notice") this.#isEarly = false;
    if (GOES_ON.has(event.type)) this.#tellHeld();
    switch (event.type) {
      case "run.started":
      case "run.resumed":
        return this.#started(event);
      case "mount.starting":
        return this.#begin(2, `mount ${event.server}`, `[mount] ${oneLine(event.server)} …`);
      case "mount.ready":
        return this.#mounted(event);
      case "mount.changed":
        return this.#changed(event);
      case "mount.failed":
        return this.#mountFailed(event);
      case "model.started":
        this.#streamed = "";
        return this.#line(3, `[${this.#who}] turn ${event.turn}`);
      case "model.delta":
        return this.#delta(event);
      case "model.finished":
        return this.#modelFinished(event);
      case "model.retrying":
        return this.#retrying(event);
      case "context.compacting":
        return this.#line(2, `[${this.#who}] the conversation becomes too long: summarising it`);
      case "context.compacted":
        return this.#compacted(event);
      case "call.progress":
        return this.#line(3, `[${this.#who}] ${event.call}: ${oneLine(event.message)}`);
      case "call.started":
      case "call.finished":
      case "call.unknown":
        return this.#call(event);
      case "call.settled":
        if (this.#isEarly) return void this.#early.push(event);
        return this.#call(event);
      case "notice":
        return this.#line(1, this.#style.yellow(`notice: ${shortIds(plainText(event.message))}`));
      case "run.suspended":
        this.#tellEarly();
        this.#ended = `PID ${event.pid} suspended (${event.reason})`;
        return this.endLine();
      case "run.exited":
        this.#ended = `PID ${event.pid} exited(${event.exit_code})`;
        return this.endLine();
    }
  }

  /** Events were lost on their way here. */
  onMissed(events: number): void {
    const told = `notice: too slow to be told everything, ${counted(events, "event")} left out`;
    this.#line(0, this.#style.yellow(told));
  }

  /** Nothing is told until `giveBack`: a person is being asked. */
  take(): void {
    this.endLine();
    this.#silent = true;
  }

  giveBack(): void {
    this.#silent = false;
    this.#tellLater();
  }

  /** Ends all that was begun; `result` is what is told elsewhere. */
  finish(result: string | undefined): void {
    if (result !== undefined && this.#held.trim() === result.trim()) this.#held = "";
    this.#tellHeld();
    this.endLine();
  }

  #tellHeld(): void {
    const text = plainText(this.#held.toWellFormed());
    this.#held = "";
    if (text !== "") {
      this.endLine();
      this.#output.offer(text.endsWith("\n") ? text : `${text}\n`);
    }
    for (const line of this.#afterHeld.splice(0)) this.#line(3, line);
  }

  /** Ends a line that was begun. */
  endLine(): void {
    const rest = this.#stream.end();
    if (this.#open !== undefined || rest !== "") this.#output.write(`${rest}\n`);
    this.#open = undefined;
    this.#tellLater();
  }

  #tellLater(): void {
    for (const line of this.#later.splice(0)) this.#output.offer(line);
  }

  /** A question is not to be talked over, and mere news must not cut a streamed sentence in two. */
  #mustWait(rank: number): boolean {
    const streaming = rank >= RANK.full && (this.#open?.startsWith("stream ") ?? false);
    return (this.#silent || streaming) && this.#later.length < LATER_LINES_MAX;
  }

  #started(event: EventOf<"run.started" | "run.resumed">): void {
    if (this.#ended !== undefined) this.#line(2, this.#style.dim(`[kernel] ${this.#ended}`));
    this.#ended = undefined;
    this.#agent = oneLine(`${event.agent}/${event.pid}`);
    const verb = event.type === "run.started" ? "spawning" : "resuming as";
    const model = oneLine(event.model);
    this.#line(2, this.#style.dim(`[kernel] ${verb} PID ${event.pid} (${model})`));
    this.#line(3, this.#style.dim(`[kernel] run ${event.run_id}`));
    if (event.forked_from !== undefined) {
      const source = shortRunId(event.forked_from);
      this.#line(1, this.#style.dim(`[kernel] PID ${event.pid} is a fork of run ${source}`));
    }
    this.#tellEarly();
  }

  #tellEarly(): void {
    for (const event of this.#early.splice(0)) this.#call(event);
  }

  #mounted(event: EventOf<"mount.ready">): void {
    // The journal doesn't keep the time, so it is 0 in what is told from there.
    const time = event.duration_ms > 0 ? `, ${elapsed(event.duration_ms)}` : "";
    const text = countText(event) + time;
    const version = this.#rank >= RANK.verbose ? `, MCP ${oneLine(event.protocol_version)}` : "";
    this.#finish(2, `mount ${event.server}`, `[mount] ${oneLine(event.server)} …`, text + version);
  }

  #mountFailed({ server, required, error }: EventOf<"mount.failed">): void {
    this.#errors.add(errorKey(error));
    if (required) return this.#line(0, this.#style.red(errorText(error)));
    const told = `[mount] ${oneLine(server)} isn't required: the run goes on without it`;
    this.#line(0, this.#style.yellow(`${errorText(error)}\n${told}`));
  }

  #changed(event: EventOf<"mount.changed">): void {
    const parts = [
      ...event.added.map((tool) => `+${tool}`),
      ...event.removed.map((tool) => `-${tool}`),
      ...event.changed.map((tool) => `~${tool}`),
    ];
    this.#line(1, `[mount] ${oneLine(event.server)} changed: ${oneLine(parts.join(" "))}`);
  }

  #delta(event: EventOf<"model.delta">): void {
    if (event.kind === "text") this.#streamed += event.text;
    if (this.#rank < (event.kind === "text" ? RANK.full : RANK.verbose)) return;
    if (this.#holdsText && event.kind === "text") {
      this.#held += event.text;
      return;
    }
    const key = `stream ${event.kind}`;
    if (this.#open !== undefined && this.#open !== key) this.endLine();
    const shown = this.#stream.take(event.text);
    if (shown === "" && this.#open !== key) return;
    const styled = event.kind === "reasoning" ? this.#style.dim(shown) : shown;
    if (!this.#output.offer(styled)) return;
    this.#open = shown.endsWith("\n") ? undefined : key;
    if (this.#open === undefined) this.#tellLater();
  }

  #modelFinished(event: EventOf<"model.finished">): void {
    if (this.#open?.startsWith("stream ")) this.endLine();
    const tokens = event.input_tokens + event.output_tokens;
    const time = elapsed(event.duration_ms);
    const line = `[${this.#who}] turn ${event.turn}: ${counted(tokens, "token")}, ${time}`;
    if (this.#held === "") this.#line(3, line);
    else this.#afterHeld.push(line);
  }

  #compacted({ how, messages, error }: EventOf<"context.compacted">): void {
    const what = counted(messages, "earlier message");
    if (how === "summary") {
      return this.#line(1, `[${this.#who}] context compacted: a summary in place of ${what}`);
    }
    const why = error === undefined ? "" : ` (no summary: ${oneLine(error.message)})`;
    const told = `context compacted: tool results in ${what} left out${why}`;
    this.#line(1, this.#style.yellow(`[${this.#who}] ${told}`));
  }

  #retrying(event: EventOf<"model.retrying">): void {
    const wait = elapsed(event.wait_ms);
    this.#line(
      1,
      this.#style.yellow(
        `[${this.#who}] model: ${oneLine(event.error.message)}, again in ${wait}`,
      ),
    );
  }

  #call(
    event: EventOf<"call.started" | "call.finished" | "call.unknown" | "call.settled">,
  ): void {
    if (event.type === "call.started") {
      const again = event.attempt > 1 ? ` (attempt ${event.attempt})` : "";
      this.#tools.set(event.call, oneLine(event.tool));
      const head = this.#head(event.call);
      const room = this.#room(textWidth(head + again) + TIME_COLUMNS, INPUT_COLUMNS);
      // What a workflow told its nodes is known only as long as it is at work.
      const input = room === 0 || event.input === null
        ? ""
        : ` ${clipped(oneLine(JSON.stringify(event.input)), room)}`;
      this.#begin(2, `call ${event.call}`, `${head}${input}${again} →`);
    } else if (event.type === "call.finished") {
      const key = `call ${event.call}`;
      const head = `${this.#head(event.call)} →`;
      const failed = event.outcome === "error" ? "error " : "";
      const time = elapsed(event.duration_ms);
      const before = this.#open === key ? this.#openColumns : textWidth(head);
      const room = this.#room(before + ` ${failed}${time}  `.length, PREVIEW_COLUMNS);
      const preview = room === 0 ? "" : clipped(oneLine(event.preview), room);
      const shown = preview === "" ? "" : `  ${this.#style.dim(preview)}`;
      this.#finish(2, key, head, `${this.#style.red(failed)}${time}${shown}`);
      this.#tools.delete(event.call);
    } else if (event.type === "call.unknown") {
      this.#tools.set(event.call, oneLine(event.tool));
      const cause = oneLine(causeText(event));
      this.#line(
        1,
        this.#style.yellow(
          `${this.#head(event.call)} (${event.effect}): outcome unknown, ${cause}`,
        ),
      );
    } else {
      if (event.tool !== undefined) this.#tools.set(event.call, oneLine(event.tool));
      this.#line(1, `${this.#head(event.call)}: settled by ${event.how} (${event.by})`);
      this.#tools.delete(event.call);
    }
  }

  /** What is left of a line for text that may be cut. */
  #room(taken: number, most: number): number {
    const columns = this.#columns();
    if (columns === undefined) return most;
    const left = Math.min(most, columns - taken);
    return left < COLUMNS_MIN ? 0 : left;
  }

  get #who(): string {
    return this.#agent ?? "agent";
  }

  #head(call: string): string {
    const start = `[${this.#who}] ${call}`;
    const columns = this.#columns() ?? Infinity;
    const room = Math.max(columns - textWidth(start) - TIME_COLUMNS, TOOL_COLUMNS_MIN);
    return `${start} ${clipped(this.#tools.get(call) ?? "", room)}`.trimEnd();
  }

  #line(rank: number, text: string): void {
    if (this.#rank < rank) return;
    if (this.#mustWait(rank)) return void this.#later.push(`${text}\n`);
    this.endLine();
    this.#output.offer(`${text}\n`);
  }

  #begin(rank: number, key: string, text: string): void {
    if (this.#rank < rank) return;
    if (this.#silent) return void this.#later.push(`${text}\n`);
    this.endLine();
    if (!this.#output.offer(text)) return;
    this.#open = key;
    this.#openColumns = textWidth(text);
  }

  #finish(rank: number, key: string, head: string, text: string): void {
    if (this.#rank < rank) return;
    if (this.#mustWait(rank)) return void this.#later.push(`${head} ${text}\n`);
    const inPlace = this.#open === key;
    if (!inPlace) this.endLine();
    this.#output.offer(`${inPlace ? "" : head} ${text}\n`);
    this.#open = undefined;
  }
}

/** Events tell an error with its device, reports without. */
function errorKey({ code, message }: ErrorBody): string {
  return `${code} ${message}`;
}
