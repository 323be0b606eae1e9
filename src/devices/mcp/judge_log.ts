/** A server's log that also counts: what came on stderr, and what came on stdout without being a message. */
import { StderrLog } from "../../mcp/stderr_log.ts";

const NEWLINE = 0x0a;
/** Begins lines of the log that came from stdout. */
const NOISE_MARK = "[stdout] ";

export class CountingLog extends StderrLog {
  /** Lines and bytes of stderr, those that were too many to keep included. */
  stderrLines = 0;
  stderrBytes = 0;
  /** Lines on stdout that were logged; of a flood the rest isn't. */
  noiseLines = 0;
  /** The first of them, redacted. */
  firstNoise: string | undefined;

  override write(bytes: Uint8Array): Promise<void> {
    this.#count(bytes);
    return super.write(bytes);
  }

  override leaveOut(bytes: Uint8Array): void {
    this.#count(bytes);
    super.leaveOut(bytes);
  }

  override async notes(texts: readonly string[]): Promise<string[]> {
    const lines = await super.notes(texts);
    for (const line of lines) {
      if (!line.startsWith(NOISE_MARK)) continue;
      this.noiseLines += 1;
      this.firstNoise ??= line.slice(NOISE_MARK.length);
    }
    return lines;
  }

  #count(bytes: Uint8Array): void {
    this.stderrBytes += bytes.length;
    for (const byte of bytes) if (byte === NEWLINE) this.stderrLines += 1;
  }
}
