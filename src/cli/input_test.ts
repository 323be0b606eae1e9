import assert from "node:assert/strict";
import { Input, type Source } from "./input.ts";

/** A source whose pieces are pushed by the test. */
class PushedSource implements Source {
  readonly #pieces: (string | null)[] = [];
  #wake: (() => void) | undefined;
  reads = 0;

  push(piece: string | null): void {
    this.#pieces.push(piece);
    this.#wake?.();
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    this.reads += 1;
    while (this.#pieces.length === 0) await new Promise<void>((resolve) => this.#wake = resolve);
    const piece = this.#pieces.shift();
    return typeof piece === "string" ? new TextEncoder().encodeInto(piece, buffer).written : null;
  }

  isTerminal(): boolean {
    return true;
  }
}

const never = new AbortController().signal;

Deno.test("lines come one at a time however they were cut, the last one without its break", async () => {
  const source = new PushedSource();
  const input = new Input(source);
  source.push("on");
  source.push("e\r\ntwo\nth");
  source.push("ree");
  source.push(null);
  assert.equal(await input.line(never), "one");
  assert.equal(await input.line(never), "two");
  assert.equal(await input.line(never), "three");
  assert.equal(await input.line(never), undefined);
});

Deno.test("an aborted question leaves its pending read to the next one", async () => {
  const source = new PushedSource();
  const input = new Input(source);
  const question = new AbortController();
  const first = input.line(question.signal);
  question.abort();
  assert.equal(await first, undefined);
  const second = input.line(never);
  source.push("answer\n");
  assert.equal(await second, "answer");
  assert.equal(source.reads, 1);
});

Deno.test("a signal that has aborted already asks nothing", async () => {
  const source = new PushedSource();
  assert.equal(await new Input(source).line(AbortSignal.abort()), undefined);
  assert.equal(source.reads, 0);
});

Deno.test("a broken source is the end of input", async () => {
  const input = new Input({
    read: () => Promise.reject(new Error("gone")),
    isTerminal: () => true,
  });
  assert.equal(await input.line(never), undefined);
});
