/**
 * What a server says on stderr: into a capped file of the run's folder, and its last lines kept for error messages.
 *
 * Lines are redacted whole before they go anywhere; control characters stay as they are (who prints them escapes them). A disk that fails never stops the server: the lines are counted and dropped.
 *
 * A log that several share has a name for each of them: one file, hard-linked, so that any of them can go, and be removed, without the others' losing it.
 */
import type { Storage, StorageFile } from "../base/storage.ts";
import { keptLine } from "./log_line.ts";

/** Size at which the file becomes `<path>.1` and a new one is begun. */
export const LOG_BYTES_MAX = 4 * 1024 * 1024;
/** A longer line is cut into pieces of about this size. */
export const LOG_LINE_CHARS_MAX = 64 * 1024;
const TAIL_LINES = 20;
const TAIL_LINE_CHARS = 500;
/** Held back when a long line is cut, so that a secret across the cut is still seen whole. */
export const LOG_OVERLAP_CHARS = 4096;
const NEWLINE = 0x0a;
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

export interface StderrLogOptions {
  /** Without storage or path only the last lines are kept. */
  storage?: Storage | undefined;
  path?: string | undefined;
  /** Takes secrets out of a line; giving a line twice must not harm it. */
  redact?: ((text: string) => string) | undefined;
  bytesMax?: number;
}

export class StderrLog {
  readonly #options: StderrLogOptions;
  readonly #redact: (text: string) => string;
  readonly #bytesMax: number;
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  readonly #tail: string[] = [];
  /** Where the file is to be found; it is written at the first one. */
  readonly #paths: string[];
  #file: StorageFile | undefined;
  /** Lines were written since the file was opened. */
  #writing = false;
  #partial = "";
  #work: Promise<void> = Promise.resolve();
  #lost = 0;
  /** Bytes left out since the last line that was taken; 0 while nothing is. */
  #leftOutBytes = 0;

  constructor(options: StderrLogOptions = {}) {
    this.#options = options;
    this.#redact = options.redact ?? ((text) => text);
    this.#bytesMax = options.bytesMax ?? LOG_BYTES_MAX;
    this.#paths = options.path === undefined ? [] : [options.path];
  }

  /** The file is found at `path` too, with all that was written so far; what is there already becomes `<path>.1`. Never rejects. */
  addName(path: string): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#paths.includes(path)) return;
      this.#paths.push(path);
      await this.#open();
      await this.#linkName(path);
      if (!this.#writing) this.#shut();
    }).catch(() => {});
    return this.#work;
  }

  /** What is written from now on need not be found at `path`. Never rejects. */
  dropName(path: string): Promise<void> {
    this.#work = this.#work.then(() => {
      const at = this.#paths.indexOf(path);
      if (at >= 0) this.#paths.splice(at, 1);
    });
    return this.#work;
  }

  /** Takes bytes as they come. Resolves once they are written: a reader that awaits it holds back a flood. Never rejects. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#leftOutBytes > 0) {
      // The line that was cut into goes whole: half of a secret couldn't be told from other text.
      const end = bytes.indexOf(NEWLINE);
      this.#leftOutBytes += end < 0 ? bytes.length : end + 1;
      if (end < 0) return this.#work;
      this.#putLeftOut();
      bytes = bytes.subarray(end + 1);
    }
    this.#partial += this.#decoder.decode(bytes, { stream: true });
    const lines = this.#partial.split("\n");
    this.#partial = lines.pop() ?? "";
    const whole = lines.map((line) => this.#taken(line.endsWith("\r") ? line.slice(0, -1) : line));
    while (this.#partial.length > LOG_LINE_CHARS_MAX) {
      const redacted = this.#redact(this.#partial);
      whole.push(keptLine(redacted.slice(0, LOG_LINE_CHARS_MAX - LOG_OVERLAP_CHARS), "stderr"));
      this.#partial = redacted.slice(LOG_LINE_CHARS_MAX - LOG_OVERLAP_CHARS);
    }
    return this.#put(whole);
  }

  /** Makes the file, so that a server that writes nothing has a log too. Never rejects. */
  begin(): Promise<void> {
    this.#work = this.#work.then(() => this.#append(new Uint8Array(0))).catch(() => {});
    return this.close();
  }

  /** Passes over bytes that are too many to keep; how many is told once the log goes on or is closed. */
  leaveOut(bytes: Uint8Array): void {
    this.#leftOutBytes += bytes.length + this.#partial.length;
    this.#partial = "";
    this.#decoder.decode();
  }

  /** A server's words without secrets, for who cuts them before they are told. */
  redacted(text: string): string {
    return this.#redact(text);
  }

  /** Adds a line that didn't come from stderr; it gives the redacted line. Never rejects. */
  async note(text: string): Promise<string> {
    const [line = ""] = await this.notes([text]);
    return line;
  }

  /** Adds lines that didn't come from stderr, such as output that was no message, cut to the length of a line; it gives the redacted lines. Never rejects. */
  async notes(texts: readonly string[]): Promise<string[]> {
    const lines = texts.map((text) => this.#redact(text).slice(0, LOG_LINE_CHARS_MAX));
    await this.#write(lines);
    return lines;
  }

  /** Forgets the last lines: what comes now is a new server's. */
  forgetLines(): void {
    this.#tail.length = 0;
  }

  /** The last lines, redacted, oldest first; a line that has no end yet included. */
  lastLines(count: number = TAIL_LINES): string[] {
    const open = this.#partial === ""
      ? []
      : [this.#redact(this.#partial).slice(0, TAIL_LINE_CHARS)];
    return [...this.#tail, ...open].slice(-count);
  }

  /** Lines that could not be written. */
  get lostLines(): number {
    return this.#lost;
  }

  /** Writes what has no end yet and closes the file; a later line opens it again. Never rejects. */
  close(): Promise<void> {
    this.#putLeftOut();
    if (this.#partial !== "") {
      const rest = this.#taken(this.#partial);
      this.#partial = "";
      this.#put([rest]);
    }
    this.#work = this.#work.then(() => this.#shut());
    return this.#work;
  }

  /** A line of the server's as it is kept. */
  #taken(line: string): string {
    return keptLine(this.#redact(line), "stderr");
  }

  #putLeftOut(): void {
    if (this.#leftOutBytes === 0) return;
    const line = `[rnix] ${this.#leftOutBytes} bytes of stderr were left out: it wrote too much`;
    this.#leftOutBytes = 0;
    this.#put([line]);
  }

  #put(lines: string[]): Promise<void> {
    if (lines.length === 0) return this.#work;
    this.#tail.push(...lines.slice(-TAIL_LINES).map((line) => line.slice(0, TAIL_LINE_CHARS)));
    this.#tail.splice(0, Math.max(0, this.#tail.length - TAIL_LINES));
    return this.#write(lines);
  }

  #write(lines: string[]): Promise<void> {
    const text = this.#encoder.encode(lines.join("\n") + "\n");
    this.#work = this.#work.then(() => this.#append(text)).catch(() => {
      this.#lost += lines.length;
    });
    return this.#work;
  }

  async #append(text: Uint8Array): Promise<void> {
    await this.#open();
    const [path] = this.#paths;
    const { storage } = this.#options;
    if (storage === undefined || path === undefined) return;
    this.#writing = true;
    if (this.#file !== undefined && this.#file.size() + text.length > this.#bytesMax) {
      this.#shut();
      for (const name of this.#paths) await storage.rename(name, `${name}.1`).catch(() => {});
      await this.#open();
      this.#writing = true;
    }
    this.#file?.append(text);
  }

  async #open(): Promise<void> {
    const [path] = this.#paths;
    const { storage } = this.#options;
    if (storage === undefined || path === undefined || this.#file !== undefined) return;
    const isNew = await storage.stat(path) === undefined;
    if (isNew) await makeFolderOf(storage, path);
    this.#file = await storage.open(path, { create: true, mode: FILE_MODE });
    if (!isNew) return;
    for (const name of this.#paths.slice(1)) await this.#linkName(name);
  }

  #shut(): void {
    this.#file?.close();
    this.#file = undefined;
    this.#writing = false;
  }

  /** The name leads to the file that is open. One that can't be given is done without. */
  async #linkName(name: string): Promise<void> {
    const { storage } = this.#options;
    const [first] = this.#paths;
    if (storage === undefined || first === undefined) return;
    if (this.#file === undefined || this.#file.isCurrent(name)) return;
    try {
      await makeFolderOf(storage, name);
      if (await storage.stat(name) !== undefined) await storage.rename(name, `${name}.1`);
      await storage.hardLink(first, name);
    } catch {
      // A file system without links: the log is found where the server was started.
    }
  }
}

async function makeFolderOf(storage: Storage, path: string): Promise<void> {
  await storage.makeFolder(path.slice(0, path.lastIndexOf("/")) || "/", FOLDER_MODE);
}
