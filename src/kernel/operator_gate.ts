/**
 * The gate's door for a person: what `rnix ls|cat|write|stat` does on the devices of a process at work. In order, as for a call: permission → intent → perform, under an AbortSignal → result; each step traced as `origin: operator`.
 *
 * Invariants
 * 1. An access has entries and an id of its own (`o1`, `o2` …): no program folds them, so no model sees them and no call is taken for one.
 * 2. A write reaches only a tool of the process's own table, through the process's own mount; what belongs to another process is PERMISSION.
 * 3. What isn't `read` leaves only after its intent is durable; what came of it is told only when that is durable.
 * 4. It is sent once. An outcome that isn't known is told as UNKNOWN_OUTCOME, here or by the resume after a crash; nothing is repeated, and no run waits for it.
 * 5. Results pass the same intake as a call's. No budget of the run is asked or used: it limits what the agent may do.
 * 6. Looking at what rnix itself knows (a list of tools, `stat`) is traced and not journaled; what a server is asked for is both.
 */
import type { Clock } from "../base/clock.ts";
import { SysError, toSysError } from "../base/errors.ts";
import { canonicalJson, type Json, sha256Hex } from "../base/json.ts";
import { redactError } from "../base/redacted_error.ts";
import type { VfsAnswer, VfsNode } from "../base/vfs_operations.ts";
import type { CallAnswer, EntryBody } from "../journal/entry.ts";
import type { DeviceOutcome, NodeFacts } from "../vfs/device.ts";
import type { FdTable } from "../vfs/fd_table.ts";
import type { MountTable } from "../vfs/mount_table.ts";
import { answerText, errorAnswer, errorRecord, MASKED } from "./answers.ts";
import { outcomeWithin } from "./cancelled.ts";
import type { Ledger } from "./ledger.ts";
import { notWritable } from "./model_device.ts";
import type { Answer, Intake, KernelLimits, Observer, Trace } from "./ports.ts";
import type { RunLog } from "./run_log.ts";
import type { ToolBinding, ToolTable } from "./tool_table.ts";

/** Bytes of one read. */
const PIECE_BYTES = 1_048_576;
/** A longer input is journaled by its hash alone, characters of JSON. */
const INPUT_CHARS_MAX = 16_384;

/** What a person does on a device of this process; `path` as the process or the whole system sees it. */
export type Access =
  | { operation: "list" | "stat" | "read"; path: string }
  | { operation: "write"; path: string; input: Json };

export interface OperatorGateDeps {
  clock: Clock;
  log: RunLog;
  ledger: Ledger;
  tools: ToolTable;
  mounts: MountTable;
  files: FdTable;
  intake: Intake;
  trace: Trace;
  observer: Observer;
  limits: KernelLimits;
  pid: number;
}

/** What is at a path, and the tool that it is where the process may call it. */
type Located = NodeFacts & { binding: ToolBinding | undefined };
type Write = Extract<Access, { operation: "write" }>;
type ResultBody = Extract<EntryBody, { type: "access.result" }>;
type Unknown = Extract<DeviceOutcome, { kind: "unknown" }>;

export class OperatorGate {
  readonly #deps: OperatorGateDeps;

  constructor(deps: OperatorGateDeps) {
    this.#deps = deps;
  }

  /** What a person is shown has none of the run's secrets. Rejects with a SysError: NOT_FOUND, PERMISSION, INVALID, what the device says (DRIVER, …), UNKNOWN_OUTCOME, or the journal's. */
  async access(access: Access, signal: AbortSignal): Promise<VfsAnswer> {
    const { redactor } = this.#deps.log;
    if (redactor === undefined) return await this.#access(access, signal);
    try {
      const answer = await this.#access(access, signal);
      return redactor.redactJson(answer as unknown as Json) as unknown as VfsAnswer;
    } catch (thrown) {
      throw redactError(thrown, redactor);
    }
  }

  async #access(access: Access, signal: AbortSignal): Promise<VfsAnswer> {
    const path = this.#ownPath(access.path);
    switch (access.operation) {
      case "list":
        return await this.#traced("List", path, () => this.#list(path, signal));
      case "stat":
        return await this.#traced("Stat", path, () => Promise.resolve(this.#stat(path)));
      case "read":
        return await this.#read(path, signal);
      case "write":
        return await this.#write({ ...access, path }, signal);
    }
  }

  /** The one path that a node has here. Throws PERMISSION for what another process has mounted. */
  #ownPath(path: string): string {
    const { pid, mounts } = this.#deps;
    if (path === "/proc/self" || path.startsWith("/proc/self/")) {
      return `/proc/${pid}${path.slice("/proc/self".length)}`;
    }
    const found = /^\/mnt\/mcp\/([^/]+)(.*)$/s.exec(path);
    const [mount = "", rest = ""] = found?.slice(1) ?? [];
    const known = mounts.paths();
    if (found === null || known.includes(`/mnt/mcp/${mount}`)) return path;
    if (known.includes(`/mnt/mcp/${pid}-${mount}`)) return `/mnt/mcp/${pid}-${mount}${rest}`;
    if (!/^\d+-/.test(mount) || mount.startsWith(`${pid}-`)) return path;
    const error = new SysError("PERMISSION", "It belongs to another process", {
      syscall: "Open",
      device: path,
      pid,
      hint: `A process reaches its own mounts alone: ${this.#mountsText()}`,
    });
    this.#trace("Open", { path }, { error });
    throw error;
  }

  #mountsText(): string {
    return this.#deps.mounts.paths().join(", ") || "it has none";
  }

  async #list(path: string, signal: AbortSignal): Promise<VfsAnswer> {
    const { mounts } = this.#deps;
    const below = mounts.below(path);
    if (below.length > 0) return { kind: "names", path, names: below };
    const { device, rest } = mounts.resolve(path);
    const { names } = await this.#asked(this.#node(path), signal, async () => {
      const names = await device.list(rest);
      return { names, bytes: new TextEncoder().encode(names.join("\n")).length };
    });
    return { kind: "names", path, names };
  }

  #stat(path: string): VfsAnswer {
    const { mounts, pid } = this.#deps;
    if (mounts.below(path).length > 0) {
      return { kind: "node", node: { path, kind: "folder", writable: false, pid } };
    }
    const node = this.#node(path);
    const { binding } = node;
    const facts: VfsNode = {
      path: node.path,
      kind: node.kind,
      writable: binding !== undefined,
      ...(binding === undefined ? {} : { effect: binding.effect }),
      pid,
    };
    return { kind: "node", node: facts };
  }

  /** What is at a path, with the tool that it is where the process may call it. */
  #node(path: string): Located {
    const { mounts, tools } = this.#deps;
    const { device, rest, mountPoint } = mounts.resolve(path);
    const facts = device.stat(rest);
    const whole = facts.path === "" ? mountPoint : `${mountPoint}/${facts.path}`;
    const binding = facts.kind === "tool" ? tools.at(whole) : undefined;
    return { ...facts, path: whole, binding };
  }

  async #read(path: string, signal: AbortSignal): Promise<VfsAnswer> {
    if (this.#deps.mounts.below(path).length > 0) {
      throw await this.#refused("Read", path, isFolder(path));
    }
    const node = await this.#located("Read", path);
    const { text } = await this.#asked(node, signal, () => this.#content(path));
    return { kind: "content", path, text };
  }

  /** Looks into a node; what its server is asked for is journaled, what rnix knows itself is not. */
  async #asked<T extends { bytes: number }>(
    node: Located,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    const startMs = this.#deps.clock.monotonic();
    const intent = node.isRemote === true ? this.#begin("read", node, undefined) : undefined;
    try {
      const got = await unlessAborted(work(), signal, node.path);
      const { bytes } = got;
      if (intent !== undefined) {
        this.#end(intent.call, startMs, { outcome: "ok", content: [], bytes });
      }
      return got;
    } catch (thrown) {
      const error = asError(thrown, node.path);
      if (intent !== undefined) this.#end(intent.call, startMs, failure(error));
      throw error;
    }
  }

  /** Open → Read → … → Close, a piece at a time. */
  async #content(path: string): Promise<{ text: string; bytes: number }> {
    const { files, clock } = this.#deps;
    const fd = this.#open(path);
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    try {
      for (;;) {
        const startMs = clock.monotonic();
        const piece = await files.read(fd, PIECE_BYTES).catch((thrown) => {
          const error = asError(thrown, path);
          this.#trace("Read", { fd, length: PIECE_BYTES }, { error, startMs });
          throw error;
        });
        if (piece.length === 0) return { text: text + decoder.decode(), bytes };
        bytes += piece.length;
        this.#trace("Read", { fd, length: PIECE_BYTES }, { result: piece.length, startMs });
        text += decoder.decode(piece, { stream: true });
      }
    } finally {
      files.close(fd);
      this.#trace("Close", { fd });
    }
  }

  async #write(access: Write, signal: AbortSignal): Promise<VfsAnswer> {
    const { log, clock } = this.#deps;
    const { binding, ...facts } = await this.#located("Write", access.path);
    if (binding === undefined) throw await this.#refused("Write", access.path, notCallable(facts));
    const intent = this.#begin("write", { ...facts, binding }, access.input);
    const startMs = clock.monotonic();
    if (binding.effect !== "read") await log.barrier(intent.seq);
    if (log.failure) throw log.failure;
    const outcome: DeviceOutcome = signal.aborted
      ? { kind: "not-sent", error: givenUp(facts.path) }
      : await this.#send(intent.call, access, binding, signal);
    if (outcome.kind === "answer") {
      return await this.#answered(intent.call, outcome, { binding, startMs, path: facts.path });
    }
    if (outcome.kind === "unknown") {
      throw await this.#unknown(intent.call, outcome, { startMs, path: facts.path });
    }
    const error = asError(outcome.error, facts.path);
    await this.#shown(this.#end(intent.call, startMs, failure(error)));
    throw error;
  }

  /** Open → Write → Close; a device that breaks its contract may have sent it. */
  async #send(
    call: string,
    { path, input }: Write,
    binding: ToolBinding,
    signal: AbortSignal,
  ): Promise<DeviceOutcome> {
    const { files, clock, limits, ledger } = this.#deps;
    const args = { size: JSON.stringify(input).length, input: binding.sensitive ? MASKED : input };
    let fd: number;
    try {
      fd = this.#open(path);
    } catch (thrown) {
      return { kind: "not-sent", error: asError(thrown, path) };
    }
    const startMs = clock.monotonic();
    try {
      const written = files.write(fd, input, {
        signal,
        cancelGraceMs: limits.cancelGraceMs,
        callId: call,
        idempotencyKey: `${ledger.identity.runId}/${call}`,
      });
      const graceMs = limits.cancelGraceMs;
      const outcome = await outcomeWithin(written, { clock, signal, graceMs, device: path });
      const error = outcome.kind === "answer" ? undefined : outcome.error;
      this.#trace("Write", { fd, ...args }, { error, startMs });
      return outcome;
    } catch (thrown) {
      const error = asError(thrown, path);
      this.#trace("Write", { fd, ...args }, { error, startMs });
      return { kind: "unknown", cause: "disconnected", error, late: Promise.resolve(undefined) };
    } finally {
      files.close(fd);
      this.#trace("Close", { fd });
    }
  }

  async #answered(
    call: string,
    outcome: Answer,
    { binding, startMs, path }: { binding: ToolBinding; startMs: number; path: string },
  ): Promise<VfsAnswer> {
    const { intake, log, clock, observer } = this.#deps;
    const keep = (whole: string) => log.journal.putBlob(new TextEncoder().encode(whole));
    const taken: CallAnswer = {
      outcome: outcome.isError ? "error" : "ok",
      ...await intake(outcome, binding, keep),
    };
    const entry = await log.appendLarge({
      type: "access.result",
      call,
      origin: "operator",
      duration_ms: Math.round(clock.monotonic() - startMs),
      ...taken,
    });
    await this.#shown(entry.seq);
    observer.emit({
      type: "notice",
      message: `A person wrote to ${path} (${call}): ${taken.outcome}`,
    });
    const { content, structured } = taken;
    return {
      kind: "result",
      path,
      call,
      outcome: taken.outcome,
      text: answerText(taken),
      content,
      ...(structured === undefined ? {} : { structured }),
    };
  }

  async #unknown(
    call: string,
    { cause, error, late }: Unknown,
    { startMs, path }: { startMs: number; path: string },
  ): Promise<SysError> {
    late.then((answer) => {
      if (answer !== undefined) this.#trace("Late", { call }, { result: answer.kind });
    }).catch(() => {});
    const record = errorRecord(error);
    await this.#shown(this.#end(call, startMs, { outcome: "unknown", cause, error: record }));
    return new SysError(
      "UNKNOWN_OUTCOME",
      `It isn't known whether ${call} took effect: ${error.message}`,
      { syscall: "Write", device: path, hint: "Check before you write it again" },
    );
  }

  /** Appends the intent. Throws the journal's error when it takes no more. */
  #begin(
    operation: "read" | "write",
    { path, binding }: { path: string; binding?: ToolBinding | undefined },
    input: Json | undefined,
  ): { call: string; seq: number } {
    const { ledger, log, pid } = this.#deps;
    const call = ledger.nextAccess();
    const text = input === undefined ? "" : canonicalJson(input);
    const isShort = input !== undefined && text.length <= INPUT_CHARS_MAX;
    const { seq } = log.append({
      type: "access.intent",
      call,
      origin: "operator",
      operation,
      device: binding?.device ?? path.replace(`/mnt/mcp/${pid}-`, "/mnt/mcp/"),
      effect: binding?.effect ?? "read",
      ...(binding === undefined ? {} : { tool: binding.definition.modelName }),
      ...(isShort ? { input } : {}),
      input_sha256: sha256Hex(text),
      idempotency_key: `${ledger.identity.runId}/${call}`,
    });
    return { call, seq };
  }

  #end(
    call: string,
    startMs: number,
    result: WithoutHead<ResultBody>,
  ): number {
    const duration_ms = Math.round(this.#deps.clock.monotonic() - startMs);
    const head = { type: "access.result", call, origin: "operator", duration_ms } as const;
    return this.#deps.log.append({ ...head, ...result }).seq;
  }

  async #shown(seq: number): Promise<void> {
    await this.#deps.log.barrier(seq);
  }

  /** Throws NOT_FOUND with what there is, traced. */
  async #located(syscall: string, path: string) {
    try {
      return this.#node(path);
    } catch (thrown) {
      throw await this.#refused(syscall, path, asError(thrown, path));
    }
  }

  #refused(syscall: string, path: string, error: SysError): Promise<SysError> {
    this.#trace(syscall, { path }, { error });
    return Promise.resolve(error.with({ syscall, device: path }));
  }

  /** Throws the device's error, traced. */
  #open(path: string): number {
    const { mounts, files } = this.#deps;
    try {
      const { device, rest } = mounts.resolve(path);
      const fd = files.open(device.open(rest), path);
      this.#trace("Open", { path }, { result: fd });
      return fd;
    } catch (thrown) {
      const error = asError(thrown, path);
      this.#trace("Open", { path }, { error });
      throw error;
    }
  }

  async #traced<T>(syscall: string, path: string, work: () => Promise<T>): Promise<T> {
    const startMs = this.#deps.clock.monotonic();
    try {
      const result = await work();
      this.#trace(syscall, { path }, { startMs });
      return result;
    } catch (thrown) {
      const error = asError(thrown, path);
      this.#trace(syscall, { path }, { error, startMs });
      throw error.with({ syscall, device: path });
    }
  }

  #trace(
    syscall: string,
    args: { [name: string]: Json },
    { result = null, error, startMs }: {
      result?: Json;
      error?: SysError | undefined;
      startMs?: number;
    } = {},
  ): void {
    const { trace, clock, pid } = this.#deps;
    const durationMs = startMs === undefined ? 0 : clock.monotonic() - startMs;
    trace.record({
      timestamp_ms: clock.now() - Math.round(durationMs),
      pid,
      syscall,
      args: { ...args, origin: "operator" },
      result,
      error: error === undefined ? null : `[${error.code}] ${error.message}`,
      duration_ms: Math.round(durationMs * 1000) / 1000,
    });
  }
}

type WithoutHead<R> = R extends unknown ? Omit<R, "type" | "call" | "origin" | "duration_ms">
  : never;

function failure(error: SysError): WithoutHead<ResultBody> {
  return { ...errorAnswer(error), error: errorRecord(error) };
}

function asError(thrown: unknown, device: string): SysError {
  if (thrown instanceof SysError) return thrown.with({ device });
  return toSysError(thrown, { device });
}

function isFolder(path: string): SysError {
  return new SysError("INVALID", "It is a folder", { hint: `List it: rnix ls ${path}` });
}

function notCallable({ kind }: NodeFacts): SysError {
  if (kind === "model") return notWritable();
  return kind === "tool"
    ? new SysError("PERMISSION", "The process may not call this tool", {
      hint: "Its manifest doesn't allow it, or its model's provider can't be offered it",
    })
    : new SysError("INVALID", "It can only be read", {
      hint: "What can be written to are tools: tools/NAME, with arguments as JSON",
    });
}

function givenUp(device: string): SysError {
  return new SysError("INTERRUPTED", "It was given up before it was sent", { device });
}

/** Reading has no effect, so nobody waits for it who has gone. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, path: string): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(givenUp(path));
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    work.catch(() => {});
  }
}
