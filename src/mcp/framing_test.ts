import assert from "node:assert/strict";
import { LineFramer } from "./framing.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function linesOf(text: string, chunkBytes: number): string[] {
  const framer = new LineFramer();
  const bytes = encoder.encode(text);
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    for (const line of framer.push(bytes.subarray(start, start + chunkBytes))) {
      lines.push(decoder.decode(line));
    }
  }
  const rest = framer.end();
  return rest === undefined ? lines : [...lines, decoder.decode(rest)];
}

Deno.test("[B49] lines come out the same however the bytes are cut", () => {
  const text = '{"a":1}\r\n{"b":"ü€😀"}\n\n{"c":3}\nlast';
  for (let chunkBytes = 1; chunkBytes <= 40; chunkBytes += 1) {
    assert.deepEqual(linesOf(text, chunkBytes), ['{"a":1}', '{"b":"ü€😀"}', "", '{"c":3}', "last"]);
  }
});

Deno.test("a carriage return inside a line stays", () => {
  assert.deepEqual(linesOf("a\rb\r\n", 3), ["a\rb"]);
});

Deno.test("[B47] the cap holds for the line, whatever the chunks", () => {
  for (const chunkBytes of [1, 3, 10, 100]) {
    const framer = new LineFramer(10);
    const feed = (text: string) => {
      const bytes = encoder.encode(text);
      for (let start = 0; start < bytes.length; start += chunkBytes) {
        framer.push(bytes.subarray(start, start + chunkBytes));
      }
    };
    feed("0123456789\n0123456789\n");
    assert.throws(() => feed("0123456789x\n"), { code: "RESOURCE_EXHAUSTED" });
  }
});

Deno.test("[B47] a line without an end is refused before it is complete", () => {
  const framer = new LineFramer(10);
  framer.push(encoder.encode("012345"));
  assert.throws(() => framer.push(encoder.encode("6789x")), { code: "RESOURCE_EXHAUSTED" });
});

Deno.test("a chunk that is reused by its owner doesn't change what was kept", () => {
  const framer = new LineFramer();
  const chunk = encoder.encode("abc");
  framer.push(chunk);
  chunk.fill(0x78);
  assert.equal(decoder.decode(framer.push(encoder.encode("d\n"))[0]), "abcd");
});
