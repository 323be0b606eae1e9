/** Output of a command as far as it is kept: its beginning and its end, with a note of how much lay between. Cut on code points. */

export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #decoder = new TextDecoder();
  #head = "";
  #tail = "";
  #dropped = 0;

  /** So many UTF-16 units at most, a third of them for the end. */
  constructor(charsMax: number) {
    this.#tailMax = Math.floor(charsMax / 3);
    this.#headMax = charsMax - this.#tailMax;
  }

  take(bytes: Uint8Array): void {
    this.#add(this.#decoder.decode(bytes, { stream: true }));
  }

  /** All that is kept. */
  text(): string {
    this.#add(this.#decoder.decode());
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
