import assert from "node:assert/strict";
import { IMAGE_CHARS_MAX, imagesIn } from "./image.ts";

const ALL = ["image/png", "image/jpeg", "image/gif", "image/webp"];

function image(bytes: string): { type: string; mimeType: string; data: string } {
  return { type: "image", mimeType: "image/x-wrong", data: btoa(bytes) };
}

Deno.test("[D05] the type of an image is what its bytes say", () => {
  const images: [bytes: string, type: string | undefined][] = [
    ["\x89PNG\r\n\x1a\n and more", "image/png"],
    ["\xff\xd8\xff\xe0 and more", "image/jpeg"],
    ["GIF89a and more", "image/gif"],
    ["RIFF\x01\x02\x03\x04WEBP and more", "image/webp"],
    ["RIFF\x01\x02\x03\x04WAVE and more", undefined],
    ["<svg/>", undefined],
    ["", undefined],
  ];
  for (const [bytes, type] of images) {
    const found = imagesIn([image(bytes)], ALL);
    assert.deepEqual(found.map(({ mediaType }) => mediaType), type === undefined ? [] : [type]);
  }
});

Deno.test("[D05] an image that a provider would refuse isn't one: too large, not base64, of another type", () => {
  const png = image("\x89PNG\r\n\x1a\n");
  assert.deepEqual(imagesIn([png], ["image/jpeg"]), []);
  assert.deepEqual(imagesIn([{ ...png, data: `${png.data.slice(0, -1)}!` }], ALL), []);
  assert.deepEqual(imagesIn([{ ...png, data: png.data.slice(0, -1) }], ALL), []);
  const large = png.data.replaceAll("=", "A").padEnd(IMAGE_CHARS_MAX, "A");
  assert.equal(imagesIn([{ ...png, data: large }], ALL).length, 1);
  assert.deepEqual(imagesIn([{ ...png, data: `${large}AAAA` }], ALL), []);
  assert.deepEqual(imagesIn([{ type: "text", data: png.data }, 7, { type: "image" }], ALL), []);
});

Deno.test("images keep their order, and none is looked for where none is taken", () => {
  const both = [image("GIF87a12"), image("\xff\xd8\xff\xe0")];
  assert.deepEqual(imagesIn(both, ALL).map(({ mediaType }) => mediaType), [
    "image/gif",
    "image/jpeg",
  ]);
  assert.deepEqual(imagesIn(both, []), []);
});

Deno.test("[D05] an image that comes as a resource is an image too, other bytes aren't", () => {
  const { data } = image("\x89PNG\r\n\x1a\n");
  const resource = (blob: string) => ({ type: "resource", resource: { uri: "file:///a", blob } });
  assert.deepEqual(imagesIn([resource(data), resource(btoa("%PDF-1.7"))], ALL), [
    { mediaType: "image/png", data },
  ]);
  const text = { type: "resource", resource: { uri: "file:///a", text: data } };
  assert.deepEqual(imagesIn([text, { type: "resource" }], ALL), []);
});
