/**
 * One session of `mcp connect`: lines in, answers out, one after another.
 *
 * Ctrl-C cancels the request in flight; at the prompt, or a second time, it leaves. Where nobody types, it leaves once the request has ended. A server that goes ends the session. What the server tells by itself goes to stderr as it comes.
 */
import { isJsonObject, type Json } from "../../base/json.ts";
import { type EndSignal, EXIT_FAILED, exitOfSignal } from "../../base/exit.ts";
import { SysError } from "../../base/errors.ts";
import type { ErrorBody } from "../../base/operations.ts";
import type {
  ServerAnswer,
  ServerEnd,
  ServerNews,
  ServerSession,
} from "../../base/server_operations.ts";
import type { Context } from "../command.ts";
import { errorBody, errorText, failureOf } from "../failure.ts";
import { jsonText, oneLine, plainText } from "../plain_text.ts";
import { commandOf, readLine, type Wish } from "./mcp_connect_lines.ts";
import { answerText, helpText, infoText, newsText } from "./mcp_connect_text.ts";

/** Longest line that is read. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;

/** What a request came to whose answer wasn't waited for. */
const LEFT = new SysError("INTERRUPTED", "Left before an answer came: a call may have happened");

/** What a line came to. */
interface Told {
  ok: boolean;
  data?: Json;
  /** In place of the data, for people. */
  text?: string;
  error?: ErrorBody;
  /** What the server's own error holds. */
  rpc?: { code: number; data?: Json };
  /** A call that may have had its effect. */
  outcome?: "unknown";
}

export interface ConnectOptions {
  context: Context;
  /** Whether a person types and reads. */
  interactive: boolean;
  timeoutMs: number | undefined;
}

export class ConnectSession {
  readonly #context: Context;
  readonly #interactive: boolean;
  readonly #timeoutMs: number | undefined;
  readonly #leave = new AbortController();
  readonly #whenLeft: Promise<never>;
  readonly #hurry = Promise.withResolvers<void>();
  #inFlight: AbortController | undefined;
  #prompt = "";
  #failed = false;
  #exitCode: number | undefined;

  constructor({ context, interactive, timeoutMs }: ConnectOptions) {
    this.#context = context;
    this.#interactive = interactive;
    this.#timeoutMs = timeoutMs;
    this.#whenLeft = new Promise((_, reject) =>
      this.left.addEventListener("abort", () => reject(LEFT), { once: true })
    );
    this.#whenLeft.catch(() => {});
  }

  /** Aborts when the session is to be left. */
  get left(): AbortSignal {
    return this.#leave.signal;
  }

  /** Resolves when a signal comes that finds the session left already: nothing is waited for any more. */
  get hurried(): Promise<void> {
    return this.#hurry.promise;
  }

  /** Of a session that a signal ended, or is about to. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** A signal came: Ctrl-C spares the session once where a request is in flight. */
  onSignal(signal: EndSignal): void {
    if (this.left.aborted) this.#hurry.resolve();
    const isFirst = signal === "INT" && this.#inFlight?.signal.aborted === false;
    this.#inFlight?.abort(new Error("Cancelled"));
    if (isFirst && this.#interactive) {
      this.#aside(this.#context.style.dim(" cancelling; Ctrl-C again leaves"));
      return;
    }
    this.#exitCode ??= exitOfSignal(signal);
    if (!isFirst) this.#leave.abort(new Error("Left"));
  }

  /** Shows what the server tells by itself. */
  onNews(news: ServerNews): void {
    const { json, quiet, world, style } = this.#context;
    if (quiet) return;
    if (!json) return this.#aside(style.dim(newsText(news)));
    const { kind, ...rest } = news;
    world.stderr.write(`${jsonText({ news: kind, ...rest })}\n`);
  }

  /** Reads and answers lines to the end. Gives the exit code. */
  async run(session: ServerSession): Promise<number> {
    let gone: ServerEnd | undefined;
    void session.ended.then((end) => {
      gone = end;
      if (this.#inFlight === undefined) this.#leave.abort(new Error("Gone"));
    });
    while (this.#exitCode === undefined && gone === undefined) {
      const line = await this.#read(session);
      if (line === undefined) break;
      if (!await this.#perform(line, session)) break;
    }
    this.#leave.abort(new Error("Over"));
    if (gone !== undefined) this.#tellGone(gone.error);
    return this.#exitCode ?? gone?.exit_code ?? (this.#failed ? EXIT_FAILED : 0);
  }

  async #read({ facts }: ServerSession): Promise<string | undefined> {
    const { stdin, stderr } = this.#context.world;
    if (this.#interactive) {
      this.#prompt = `${oneLine(facts.server)}> `;
      stderr.write(this.#prompt);
    }
    const line = await stdin.line(this.left, LINE_BYTES_MAX);
    if (line === undefined && this.#interactive) stderr.write("\n");
    this.#prompt = "";
    return line;
  }

  /** Whether there may be another line. */
  async #perform(line: string, session: ServerSession): Promise<boolean> {
    let told: Told;
    try {
      const wish = readLine(line, session.facts);
      if (wish === undefined) return true;
      if (wish.kind === "quit") return false;
      told = await this.#grant(wish, session);
    } catch (thrown) {
      told = { ok: false, error: failureOf(thrown).error };
    }
    this.#failed ||= !told.ok;
    this.#tell(commandOf(line), told);
    await this.#context.world.stdout.flush();
    return true;
  }

  async #grant(wish: Exclude<Wish, { kind: "quit" }>, session: ServerSession): Promise<Told> {
    switch (wish.kind) {
      case "help":
        return { ok: true, data: helpText(), text: helpText() };
      case "info":
        return { ok: true, data: { ...session.facts }, text: infoText(session.facts) };
      case "tool":
        return await this.#showTool(wish.name, session);
      case "ask": {
        const startMs = this.#context.world.clock.monotonic();
        const told = toldOf(await this.#ask(session, wish.ask), wish.ask.params["name"]);
        const isPing = ["ping", "server/discover"].includes(wish.ask.method);
        if (!isPing || !told.ok) return told;
        const durationMs = Math.round(this.#context.world.clock.monotonic() - startMs);
        return { ok: true, data: { duration_ms: durationMs }, text: `answered in ${durationMs}ms` };
      }
    }
  }

  async #showTool(name: string, session: ServerSession): Promise<Told> {
    const told = toldOf(await this.#ask(session, { method: "tools/list", params: {} }), undefined);
    const { tools } = isJsonObject(told.data) ? told.data : {};
    if (!told.ok || !Array.isArray(tools)) return told;
    const tool = tools.find((each) => isJsonObject(each) && each["name"] === name);
    if (tool !== undefined) return { ok: true, data: tool };
    const error = { code: "NOT_FOUND", message: `The server has no tool "${name}"` };
    return { ok: false, error: { ...error, hint: "tools lists them" } };
  }

  async #ask(
    session: ServerSession,
    ask: { method: string; params: { [key: string]: Json } },
  ): Promise<ServerAnswer> {
    const limit = this.#timeoutMs === undefined ? {} : { timeout_ms: this.#timeoutMs };
    const inFlight = new AbortController();
    this.#inFlight = inFlight;
    try {
      const answer = session.ask({ ...ask, ...limit }, inFlight.signal);
      answer.catch(() => {});
      return await Promise.race([answer, this.#whenLeft]);
    } catch (thrown) {
      if (thrown !== LEFT || ask.method !== "tools/call") throw thrown;
      return { outcome: "unknown", error: errorBody(LEFT) };
    } finally {
      this.#inFlight = undefined;
    }
  }

  #tell(command: string, told: Told): void {
    const { json, world } = this.#context;
    const { text, ...rest } = told;
    if (json) {
      world.stdout.write(`${jsonText({ command, ...rest })}\n`);
      return;
    }
    if (told.data !== undefined) {
      const width = world.stdout.isTerminal ? world.columns() : undefined;
      const whole = text ?? answerText(command, told.data, width);
      const shown = world.stdout.isTerminal ? plainText(whole) : whole;
      world.stdout.write(shown.endsWith("\n") ? shown : `${shown}\n`);
    }
    if (told.error !== undefined) world.stderr.write(`${errorText(told.error)}\n`);
  }

  #tellGone(error: ErrorBody): void {
    const { json, world } = this.#context;
    if (json) world.stdout.write(`${jsonText({ command: "connect", ok: false, error })}\n`);
    else world.stderr.write(`${errorText(error)}\n`);
  }

  /** A line beside the answers; what is being typed is begun again after it. */
  #aside(line: string): void {
    const { stderr } = this.#context.world;
    stderr.write(this.#prompt === "" ? `${line}\n` : `\r${line}\n${this.#prompt}`);
  }
}

function toldOf(answer: ServerAnswer, name: Json | undefined): Told {
  if (answer.outcome === "error") {
    const { error, rpc } = answer;
    return { ok: false, error, ...(rpc === undefined ? {} : { rpc }) };
  }
  if (answer.outcome === "unknown") {
    return { ok: false, outcome: "unknown", error: answer.error };
  }
  const { result } = answer;
  if (!isJsonObject(result) || result["isError"] !== true) return { ok: true, data: result };
  const message = `Tool "${typeof name === "string" ? name : ""}" reported an error`;
  return { ok: false, data: result, error: { code: "DRIVER", message } };
}
