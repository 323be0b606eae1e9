/**
 * MCP over the stdin and stdout of a child in its own session (pgid = pid).
 *
 * stderr is drained from the start, framing is on bytes, a closed pipe is an error value, and the end of the child is the end of the connection, also where a grandchild keeps its stdout open. Closing ends the whole process group and reaps the child.
 *
 * `pid` and `stderr` are there because the SDK takes a transport without them for HTTP.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import type { Clock } from "../base/clock.ts";
import { within } from "../base/clock.ts";
import { findCommand } from "../base/command_path.ts";
import { SysError } from "../base/errors.ts";
import { SendError, type ServerConnection } from "./connection.ts";
import { Allowance, Pace } from "./flood.ts";
import { LineFramer } from "./framing.ts";
import type { ProcessKeeper, StdioLaunch } from "./launch.ts";
import { messagesOf } from "./message_text.ts";
import { endGroup } from "./process_group.ts";
import { LOG_BYTES_MAX, type StderrLog } from "./stderr_log.ts";
import { StdoutNoise } from "./stdout_noise.ts";

/** Messages that wait for a server which doesn't read its stdin. */
export const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
/** A pipe takes this many bytes whole or not at all (POSIX allows 512; Linux and macOS give these). */
const PIPE_ATOMIC_BYTES = Deno.build.os === "linux" ? 4096 : 512;
/** How long output is still read after the child's end. */
const DRAIN_MS_MAX = 250;
/** What of stderr is kept at once (as much as the log holds), and every second from then on. */
const STDERR_BYTES_MAX = 2 * LOG_BYTES_MAX;
const STDERR_BYTES_PER_SECOND = 1024 * 1024;
/** What a line of stderr costs besides its bytes. */
const STDERR_LINE_BYTES = 128;
/** What is read from a pipe at once. */
const READ_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

export interface StdioDeps {
  clock: Clock;
  keeper?: ProcessKeeper | undefined;
  log: StderrLog;
  /** One sentence per peculiarity, at most once each. */
  onWarning?: ((message: string) => void) | undefined;
}

export class StdioTransport implements ServerConnection {
  onmessage: ServerConnection["onmessage"];
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  readonly #launch: Pick<StdioLaunch, "server">;
  readonly #deps: StdioDeps;
  readonly #child: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #encoder = new TextEncoder();
  readonly #noise: StdoutNoise;
  readonly #noted = new Set<string>();
  readonly #readers: { cancel(): Promise<void> }[] = [];
  readonly #exit: Promise<string>;
  #stdout: Promise<void> = Promise.resolve();
  #stderr: Promise<void> = Promise.resolve();
  #queuedBytes = 0;
  /** Whether a write has failed: what waited behind it is never begun. */
  #inputFailed = false;
  #ended: string | undefined;
  #ending: Promise<void> | undefined;
  #unwanted = false;

  /**
   * Finds the command and starts the child. It runs from here on, though messages are read only after `start`.
   *
   * Throws NOT_FOUND, PERMISSION, or DRIVER when the system refuses.
   */
  static async spawn(launch: StdioLaunch, deps: StdioDeps): Promise<StdioTransport> {
    const program = await findCommand(launch.command, {
      cwd: launch.cwd,
      path: launch.env["PATH"],
    });
    return new StdioTransport(launch, deps, startChild(program, launch, deps.keeper));
  }

  private constructor(
    launch: Pick<StdioLaunch, "server">,
    deps: StdioDeps,
    child: Deno.ChildProcess,
  ) {
    this.#launch = launch;
    this.#deps = deps;
    this.#child = child;
    deps.keeper?.groupStarted(child.pid);
    this.#stdin = child.stdin.getWriter();
    this.#stdin.closed.catch(() => {});
    this.#noise = new StdoutNoise(deps.clock, deps.log);
    this.#stderr = this.#drainStderr();
    this.#exit = child.status.then(({ code, signal }) =>
      signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`
    );
    this.#exit.then(async (reason) => {
      await within(deps.clock, DRAIN_MS_MAX, this.#stdout.catch(() => {}), () => {});
      this.#finish(reason);
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Only marks this transport as stdio for the SDK; stderr is read here. */
  get stderr(): null {
    return null;
  }

  get ended(): string | undefined {
    return this.#ended;
  }

  get firstNoise(): string | undefined {
    return this.#noise.first;
  }

  unwanted(note?: string): void {
    this.#unwanted = true;
    if (note === undefined || this.#noted.has(note)) return;
    this.#noted.add(note);
    this.#deps.log.note(`[rnix] ${note}`);
  }

  lastLines(): string[] {
    return this.#deps.log.lastLines();
  }

  drained(): Promise<void> {
    return within(this.#deps.clock, DRAIN_MS_MAX, this.#stderr, () => {});
  }

  start(): Promise<void> {
    const framer = new LineFramer();
    this.#stdout = this.#drain(
      this.#child.stdout,
      (chunk, pace) => this.#takeLines(framer.push(chunk), pace),
    ).then(() => this.#takeLines([framer.end() ?? new Uint8Array(0)], new Pace(this.#deps.clock)));
    this.#stdout.then(() => this.#outputClosed(), (thrown) => {
      this.#finish(thrown instanceof Error ? thrown.message : String(thrown));
    });
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const bytes = this.#encoder.encode(JSON.stringify(message) + "\n");
    if (this.#ended !== undefined || this.#ending !== undefined) {
      throw new SendError(
        `Server "${this.#launch.server}" is gone: ${this.#ended ?? "closed"}`,
        true,
      );
    }
    if (this.#queuedBytes + bytes.length > QUEUED_BYTES_MAX) {
      throw new SendError(
        `Server "${this.#launch.server}" doesn't read its stdin: ${this.#queuedBytes} bytes wait`,
        true,
      );
    }
    this.#queuedBytes += bytes.length;
    try {
      await this.#stdin.write(bytes);
    } catch (thrown) {
      // One is written after the other, and failures come in the same order: only the first had begun.
      const hadBegun = !this.#inputFailed;
      this.#inputFailed = true;
      await this.#inputClosed();
      throw new SendError(
        `Server "${this.#launch.server}" is gone: ${this.#ended ?? "it closed its stdin"}`,
        !hadBegun ||
          bytes.length <= PIPE_ATOMIC_BYTES && thrown instanceof Deno.errors.BrokenPipe,
        thrown,
      );
    } finally {
      this.#queuedBytes -= bytes.length;
    }
  }

  async close(): Promise<void> {
    this.#finish("rnix closed it");
    await this.#ending;
  }

  /** Nothing can be said to it any more; answers that are on their way get a moment. Who learns of the failed write finds the connection ended. */
  async #inputClosed(): Promise<void> {
    const { clock } = this.#deps;
    const exit = await within<string | undefined>(clock, DRAIN_MS_MAX, this.#exit, () => undefined);
    if (exit !== undefined) {
      await within(clock, DRAIN_MS_MAX, this.#stdout.catch(() => {}), () => {});
    }
    this.#finish(exit ?? "it closed its stdin");
  }

  /** Mostly the first sign of an exit, which is the better reason to tell. */
  async #outputClosed(): Promise<void> {
    const exit = this.#exit;
    this.#finish(await within(this.#deps.clock, DRAIN_MS_MAX, exit, () => "it closed its stdout"));
  }

  /** The one way out: says why, lets nothing more in, ends the group. */
  #finish(reason: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    this.#ending = this.#end();
    this.onclose?.();
  }

  async #end(): Promise<void> {
    // A server that doesn't read keeps a waiting write for ever; then the end of its life ends the write.
    this.#stdin.close().catch(() => this.#stdin.abort().catch(() => {}));
    await endGroup(this.#child, this.#deps.clock);
    this.#deps.keeper?.groupEnded(this.pid);
    await within(
      this.#deps.clock,
      DRAIN_MS_MAX,
      Promise.allSettled([this.#stdout, this.#stderr]).then(() => {}),
      () => {},
    );
    for (const reader of this.#readers) reader.cancel().catch(() => {});
    await this.#noise.close();
    await this.#deps.log.close();
  }

  /** Reads to the end, at a pace that leaves time for all else; rejects only with what `take` throws. All pieces come in one buffer: what is kept of a piece has to be copied. */
  async #drain(
    stream: ReadableStream<Uint8Array<ArrayBuffer>>,
    take: (chunk: Uint8Array, pace: Pace) => Promise<void> | void,
  ): Promise<void> {
    const pace = new Pace(this.#deps.clock);
    const reader = stream.getReader({ mode: "byob" });
    this.#readers.push(reader);
    let buffer = new ArrayBuffer(READ_BYTES);
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(buffer))
        .catch(() => ({ done: true, value: undefined }));
      if (done || value === undefined) return;
      pace.begin();
      await take(value, pace);
      buffer = value.buffer;
      await pace.rest();
    }
  }

  /** What is beyond the log's share is passed over unread. */
  #drainStderr(): Promise<void> {
    const { clock, log } = this.#deps;
    const kept = new Allowance(clock, {
      max: STDERR_BYTES_MAX,
      perSecond: STDERR_BYTES_PER_SECOND,
    });
    return this.#drain(this.#child.stderr, async (chunk, pace) => {
      if (!kept.take(chunk.length + countLines(chunk) * STDERR_LINE_BYTES)) {
        return log.leaveOut(chunk);
      }
      await log.write(chunk);
      pace.useful();
    });
  }

  async #takeLines(lines: Uint8Array[], pace: Pace): Promise<void> {
    for (const line of lines) {
      if (this.#ended !== undefined) return;
      const messages = messagesOf(line);
      if (messages.length > 0) {
        await this.#flushNoise();
        this.#noise.messageCame();
        if (this.#handOn(messages)) pace.useful();
      } else {
        const flood = this.#noise.take(line);
        if (flood !== undefined) {
          await this.#flushNoise();
          return this.#finish(flood);
        }
      }
      const rest = pace.rest();
      if (rest !== undefined) await rest;
    }
    await this.#flushNoise();
  }

  /** Whether any of them was of use. */
  #handOn(messages: JSONRPCMessage[]): boolean {
    let useful = false;
    for (const message of messages) {
      this.#unwanted = false;
      this.onmessage?.(message);
      useful ||= !this.#unwanted;
    }
    return useful;
  }

  async #flushNoise(): Promise<void> {
    if (!await this.#noise.flush()) return;
    this.#deps.onWarning?.(
      `Server "${this.#launch.server}" writes lines to stdout that are no MCP messages; they go to its log`,
    );
  }
}

function countLines(chunk: Uint8Array): number {
  let lines = 0;
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

function startChild(
  program: string,
  launch: StdioLaunch,
  keeper: ProcessKeeper | undefined,
): Deno.ChildProcess {
  const args = keeper?.launchArguments?.(program, launch.args, launch.env) ?? launch.args;
  try {
    return new Deno.Command(program, {
      args,
      cwd: launch.cwd,
      clearEnv: true,
      env: { ...launch.env, ...keeper?.mark },
      detached: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    const cause = thrown instanceof Error ? thrown.message : String(thrown);
    throw new SysError("DRIVER", `Cannot start "${program}" in "${launch.cwd}": ${cause}`, {
      cause: thrown,
      hint: "Check that the folder exists and that the program can be run from a shell",
    });
  }
}
