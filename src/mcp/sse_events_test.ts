/** Events come out whole, however the stream was cut and its lines ended. */
import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { type SseEvent, SseParser } from "./sse_events.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

interface Told {
  type: string;
  data: string | undefined;
  id?: string;
  retryMs?: number;
}

function told({ type, data, id, retryMs }: SseEvent): Told {
  return {
    type,
    data: data === undefined ? undefined : new TextDecoder().decode(data),
    ...(id === undefined ? {} : { id }),
    ...(retryMs === undefined ? {} : { retryMs }),
  };
}

function parse(...chunks: string[]): Told[] {
  const parser = new SseParser();
  return chunks.flatMap((chunk) => parser.push(bytes(chunk))).map(told);
}

const STREAM =
  "\ufeff: hello\n\nid: 7\nretry: 250\ndata: a\ndata:b\n\nevent: endpoint\ndata:  /x\n\n" +
  "data\n\nnothing: known\n\nid: 8\n\ndata: cut";
const EVENTS: Told[] = [
  { type: "message", data: "a\nb", id: "7", retryMs: 250 },
  { type: "endpoint", data: " /x" },
  { type: "message", data: "" },
  { type: "message", data: undefined, id: "8" },
];

Deno.test("data, type, id and pause of each event; comments and unknown fields count for nothing", () => {
  assert.deepEqual(parse(STREAM), EVENTS);
});

Deno.test("lines end in newline, return, or both, also where chunks part them", () => {
  for (const ending of ["\n", "\r\n", "\r"]) {
    const stream = STREAM.replaceAll("\n", ending);
    const pieces = [...bytes(stream)].map((byte) => new Uint8Array([byte]));
    const parser = new SseParser();
    assert.deepEqual(pieces.flatMap((piece) => parser.push(piece)).map(told), EVENTS);
    assert.deepEqual(parse(stream), EVENTS);
  }
  assert.deepEqual(parse("data: a\r", "\ndata: b\r\n\r", "\n"), [{
    type: "message",
    data: "a\nb",
  }]);
});

Deno.test("[B47] the cap holds for one event, not for the stream, and comments have none", () => {
  const parser = new SseParser(100);
  for (let round = 0; round < 50; round += 1) {
    assert.equal(parser.push(bytes(`: ${"c".repeat(40_000)}\n`)).length, 0);
    assert.equal(parser.push(bytes(`data: ${"x".repeat(90)}\n\n`)).length, 1);
  }
  assert.throws(
    () => {
      for (;;) parser.push(bytes("data: without end"));
    },
    (thrown) => thrown instanceof SysError && thrown.code === "RESOURCE_EXHAUSTED",
  );
});

Deno.test("an id with a null and a pause that is no number are passed over", () => {
  assert.deepEqual(parse("id: a\0b\nretry: soon\ndata: x\n\n"), [{ type: "message", data: "x" }]);
});
