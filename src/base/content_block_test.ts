import assert from "node:assert/strict";
import { blockText, isBinaryBlock, resultText } from "./content_block.ts";

Deno.test("[D05] binary content is named with type and size, never printed", () => {
  const data = "A".repeat(4096);
  assert.equal(
    blockText({ type: "image", data, mimeType: "image/png" }),
    "[image image/png, 3 KB]",
  );
  assert.equal(
    blockText({ type: "audio", data: "QUJD", mimeType: "audio/wav" }),
    "[audio audio/wav, 3 bytes]",
  );
  assert.equal(
    blockText({ type: "resource", resource: { uri: "file:///a", mimeType: "x/y", blob: data } }),
    "[resource file:///a, x/y, 3 KB]",
  );
});

Deno.test("text, text resources and links are shown", () => {
  assert.equal(blockText({ type: "text", text: "a" }), "a");
  assert.equal(
    blockText({ type: "resource", resource: { uri: "file:///a", text: "body" } }),
    "[resource file:///a]\nbody",
  );
  assert.equal(
    blockText({ type: "resource_link", uri: "file:///a", name: "A" }),
    "[resource file:///a, A]",
  );
});

Deno.test("unknown kinds and odd values become their JSON, nothing is lost", () => {
  assert.equal(blockText({ type: "novel", x: 1 }), '{"type":"novel","x":1}');
  assert.equal(blockText({ type: "resource" }), '{"type":"resource"}');
  assert.equal(blockText(7), "7");
});

Deno.test("only images, audio and blobs are binary", () => {
  assert.ok(
    isBinaryBlock({ type: "image" }) && isBinaryBlock({ type: "resource", resource: { blob: "" } }),
  );
  assert.ok(
    !isBinaryBlock({ type: "resource", resource: { text: "" } }) &&
      !isBinaryBlock({ type: "text" }) && !isBinaryBlock("image"),
  );
});

Deno.test("a result's text is its blocks, else its structured content, else (empty)", () => {
  assert.equal(
    resultText({
      content: [{ type: "text", text: "a" }, { type: "text", text: "" }, {
        type: "text",
        text: "b",
      }],
      structured: 1,
    }),
    "a\nb",
  );
  assert.equal(
    resultText({ content: [{ type: "text", text: "" }], structured: { a: 1 } }),
    '{"a":1}',
  );
  assert.equal(resultText({ content: [] }), "(empty)");
});

Deno.test("[D05] base64 in structured content and in unknown kinds is named by its size, other long texts stay", () => {
  const bytes = Uint8Array.from({ length: 3000 }, (_, index) => (index * 167) % 251);
  const data = btoa(String.fromCharCode(...bytes));
  const structured = { name: "a.png", data, url: `data:image/png;base64,${data}` };
  assert.equal(
    resultText({ content: [], structured }),
    '{"name":"a.png","data":"[binary, 3 KB]","url":"[binary, 3 KB]"}',
  );
  assert.equal(blockText({ type: "video", data }), '{"type":"video","data":"[binary, 3 KB]"}');
  const plain = ["ACGT".repeat(1000), "0f".repeat(2000), "word ".repeat(500), data.slice(0, 800)];
  for (const text of plain) {
    assert.equal(resultText({ content: [], structured: text }), JSON.stringify(text));
  }
  assert.equal(blockText({ type: "text", text: data }), data, "what a tool gives as text is text");
});
