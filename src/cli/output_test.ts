import assert from "node:assert/strict";
import { BUFFERED_CHARS_MAX, Output, type Sink } from "./output.ts";

/** A sink that takes a few bytes whenever it is let. */
class SlowSink implements Sink {
  text = "";
  writes = 0;
  readonly #bytesMax: number;
  #gate: (() => void) | undefined;
  #open = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.writes += 1;
    if (!this.#open) await new Promise<void>((resolve) => this.#gate = resolve);
    const taken = bytes.subarray(0, this.#bytesMax);
    this.text += new TextDecoder().decode(taken);
    return taken.length;
  }

  release(): void {
    this.#open = true;
    this.#gate?.();
  }

  isTerminal(): boolean {
    return false;
  }
}

Deno.test("writes keep their order through a reader that takes a little at a time", async () => {
  const sink = new SlowSink(3);
  const output = new Output(sink);
  for (const word of ["one ", "two ", "three"]) output.write(word);
  assert.equal(sink.text, "", "a write must not wait for the reader");
  sink.release();
  await output.flush();
  assert.equal(sink.text, "one two three");
});

Deno.test("a stalled reader costs a bounded amount of memory, and results are never dropped", async () => {
  const sink = new SlowSink(BUFFERED_CHARS_MAX);
  const output = new Output(sink);
  const block = "x".repeat(1024 * 1024);
  let taken = 0;
  while (output.offer(block)) taken += 1;
  assert.equal(taken, BUFFERED_CHARS_MAX / block.length + 1);
  output.write("result");
  sink.release();
  await output.flush();
  assert.equal(sink.text.length, taken * block.length + 6);
  assert.ok(output.offer("room again"));
  await output.flush();
});

Deno.test("a reader that has gone makes the stream silent and nothing else", async () => {
  let writes = 0;
  const output = new Output({
    write: () => {
      writes += 1;
      return Promise.reject(new Deno.errors.BrokenPipe("gone"));
    },
    isTerminal: () => false,
  });
  output.write("one");
  await output.flush();
  output.write("two");
  assert.ok(output.offer("three"));
  await output.flush();
  assert.equal(writes, 1);
});

Deno.test("writing while a flush is awaited is flushed too", async () => {
  const sink = new SlowSink(100);
  const output = new Output(sink);
  output.write("a");
  const flushed = output.flush();
  output.write("b");
  sink.release();
  await flushed;
  assert.equal(sink.text, "ab");
});

/** Fails every write. */
function failing(failure: Error, terminal = false): Output {
  return new Output({ write: () => Promise.reject(failure), isTerminal: () => terminal });
}

Deno.test("what could not be written is known, unless nobody was there to read it", async () => {
  const full = Object.assign(new Error("No space left on device"), { code: "ENOSPC" });
  const hungUp = Object.assign(new Error("Input/output error"), { code: "EIO" });
  const cases: [Output, unknown][] = [
    [failing(full), full],
    [failing(full, true), full],
    [failing(hungUp), hungUp],
    [failing(hungUp, true), undefined],
    [failing(new Deno.errors.BrokenPipe("gone")), undefined],
  ];
  for (const [output, failure] of cases) {
    output.write("");
    await output.flush();
    assert.equal(output.failure, undefined, "nothing was to be written");
    output.write("text");
    await output.flush();
    assert.equal(output.failure, failure);
  }
});
