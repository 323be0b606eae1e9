import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { crc32 as nativeCrc32 } from "node:zlib";
import { crc32, newSha256, plainCrc32 } from "./hash.ts";

function bytesOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 73 + (index >> 3)) & 0xff);
}

Deno.test("the plain sum is the native one", () => {
  assert.equal(plainCrc32(new TextEncoder().encode("123456789")), 0xcbf43926);
  for (const length of [0, 1, 2, 255, 256, 4097]) {
    assert.equal(plainCrc32(bytesOf(length)), nativeCrc32(bytesOf(length)), String(length));
  }
});

Deno.test("the sum stays the same where the native one takes over", () => {
  const bytes = bytesOf(300_000);
  const sums = Array.from({ length: 6 }, () => crc32(bytes));
  assert.deepEqual(sums, Array(6).fill(nativeCrc32(bytes)));
});

Deno.test("SHA-256 can be fed in pieces", () => {
  const hash = newSha256();
  hash.update("one ");
  hash.update(new TextEncoder().encode("two"));
  assert.equal(hash.digest("hex"), createHash("sha256").update("one two").digest("hex"));
});
