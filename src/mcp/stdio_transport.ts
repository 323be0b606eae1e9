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
import { SysError } from "../base/errors.ts";
import { findCommand } from "./command_path.ts";
import { isRpcMessage, SendError, type ServerConnection } from "./connection.ts";
import { LineFramer } from "./framing.ts";
import type { McpServerLaunch, ProcessKeeper } from "./launch.ts";
import { endGroup } from "./process_group.ts";
import type { StderrLog } from "./stderr_log.ts";

/** Messages that wait for a server which doesn't read its stdin. */
export const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
/** A pipe takes this many bytes whole or not at all (POSIX allows 512; Linux and macOS give these). */
const PIPE_ATOMIC_BYTES = Deno.build.os === "linux" ? 4096 : 512;
/** How long output is still read after the child's end. */
const DRAIN_MS_MAX = 250;
const NOISE_CHARS_MAX = 200;
/** Begins the log lines that came from stdout. */
const NOISE_MARK = "[stdout] ";

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
  readonly #launch: Pick<McpServerLaunch, "server">;
  readonly #deps: StdioDeps;
  readonly #child: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();
  readonly #readers: { cancel(): Promise<void> }[] = [];
  readonly #exit: Promise<string>;
  #stdout: Promise<void> = Promise.resolve();
  #stderr: Promise<void> = Promise.resolve();
  #queuedBytes = 0;
  #ended: string | undefined;
  #ending: Promise<void> | undefined;
  #firstNoise: string | undefined;

  /**
   * Finds the command and starts the child. It runs from here on, though messages are read only after `start`.
   *
   * Throws NOT_FOUND, PERMISSION, or DRIVER when the system refuses.
   */
  static async spawn(launch: McpServerLaunch, deps: StdioDeps): Promise<StdioTransport> {
    const program = await findCommand(launch.command, {
      cwd: launch.cwd,
      path: launch.env["PATH"],
    });
    return new StdioTransport(launch, deps, startChild(program, launch, deps.keeper));
  }

  private constructor(
    launch: Pick<McpServerLaunch, "server">,
    deps: StdioDeps,
    child: Deno.ChildProcess,
  ) {
    this.#launch = launch;
    this.#deps = deps;
    this.#child = child;
    deps.keeper?.groupStarted(child.pid);
    this.#stdin = child.stdin.getWriter();
    this.#stdin.closed.catch(() => {});
    this.#stderr = this.#drain(child.stderr.getReader(), (chunk) => deps.log.write(chunk));
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
    return this.#firstNoise;
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
      this.#child.stdout.getReader(),
      (chunk) => this.#takeLines(framer.push(chunk)),
    ).then(() => this.#takeLines([framer.end() ?? new Uint8Array(0)]));
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
    const alone = this.#queuedBytes === 0;
    this.#queuedBytes += bytes.length;
    try {
      await this.#stdin.write(bytes);
    } catch (thrown) {
      // Nothing can be said to it any more; answers that are on their way get a moment.
      this.#deps.clock.after(DRAIN_MS_MAX, () => this.#finish("it closed its stdin"));
      throw new SendError(
        `Server "${this.#launch.server}" closed its stdin`,
        alone && bytes.length <= PIPE_ATOMIC_BYTES && thrown instanceof Deno.errors.BrokenPipe,
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
    await this.#deps.log.close();
  }

  /** Reads to the end; rejects only with what `take` throws. */
  async #drain(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    take: (chunk: Uint8Array) => Promise<void> | void,
  ): Promise<void> {
    this.#readers.push(reader);
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || value === undefined) return;
      await take(value);
    }
  }

  async #takeLines(lines: Uint8Array[]): Promise<void> {
    for (const line of lines) {
      if (line.length === 0 || this.#ended !== undefined) continue;
      const text = this.#decoder.decode(line);
      const messages = parseMessages(text);
      if (messages === undefined) await this.#takeNoise(text);
      else for (const message of messages) this.onmessage?.(message);
    }
  }

  async #takeNoise(text: string): Promise<void> {
    if (text.trim() === "") return;
    const first = this.#firstNoise === undefined;
    if (first) this.#firstNoise = "";
    const line = await this.#deps.log.note(`${NOISE_MARK}${text}`);
    if (!first) return;
    this.#firstNoise = line.slice(NOISE_MARK.length, NOISE_MARK.length + NOISE_CHARS_MAX);
    this.#deps.onWarning?.(
      `Server "${this.#launch.server}" writes lines to stdout that are no MCP messages; they go to its log`,
    );
  }
}

/** The messages of a line (a batch has several); undefined when it isn't JSON-RPC. */
function parseMessages(text: string): JSONRPCMessage[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const values = Array.isArray(value) ? value : [value];
    return values.length > 0 && values.every(isRpcMessage) ? values : undefined;
  } catch {
    return undefined;
  }
}

function startChild(
  program: string,
  launch: McpServerLaunch,
  keeper: ProcessKeeper | undefined,
): Deno.ChildProcess {
  try {
    return new Deno.Command(program, {
      args: launch.args,
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
