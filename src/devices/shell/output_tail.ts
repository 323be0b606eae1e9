/**
 * Output of a command as far as it is kept: its beginning and its end, with a note of how much lay between. Cut on code points.
 *
 * Each stream is decoded by itself, so that a character in two pieces survives what the other one says between them. Secrets go before anything is cut: half of one couldn't be told afterwards.
 */
import type { RedactingStream, Redactor } from "../../base/redaction.ts";

export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #secrets: Redactor;
  readonly #streams: { decoder: TextDecoder; clean: RedactingStream }[] = [];
  #head = "";
  #tail = "";
  #dropped = 0;

  /** So many UTF-16 units at most, a third of them for the end. */
  constructor(charsMax: number, secrets: Redactor) {
    this.#secrets = secrets;
    this.#tailMax = Math.floor(charsMax / 3);
    this.#headMax = charsMax - this.#tailMax;
  }

  /** What takes the pieces of one stream, in order. */
  stream(): (bytes: Uint8Array) => void {
    const [decoder, clean] = [new TextDecoder(), this.#secrets.stream()];
    this.#streams.push({ decoder, clean });
    return (bytes) => this.#add(clean.push(decoder.decode(bytes, { stream: true })));
  }

  /** All that is kept. */
  text(): string {
    for (const { decoder, clean } of this.#streams) {
      this.#add(clean.push(decoder.decode()) + clean.flush());
    }
    const gap = this.#dropped === 0 ? "" : `\n… (${this.#dropped} characters left out) …\n`;
    return (this.#head + gap + this.#tail).toWellFormed();
  }

  #add(text: string): void {
    const room = this.#headMax - this.#head.length;
    if (room > 0) {
      this.#head += text.slice(0, room);
      text = text.slice(room);
    }
    this.#tail += text;
    const over = this.#tail.length - this.#tailMax;
    if (over <= 0) return;
    this.#dropped += over;
    this.#tail = this.#tail.slice(over);
  }
}
