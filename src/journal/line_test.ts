import assert from "node:assert/strict";
import { crc32 } from "node:zlib";
import { intent, reply, result } from "../../tests/doubles/sample_entries.ts";
import type { EntryBody } from "./entry.ts";
import { decodeLine, encodeLine, inspectLine, isSealed, leadingRecord, sealJson } from "./line.ts";

const HEAD = { seq: 12, ts: 1_700_000_000_000, synced: 9 };
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const lineOf = (body: EntryBody): Uint8Array => encodeLine(HEAD, body, {}).bytes.subarray(0, -1);

Deno.test("the line format is as documented, byte for byte", () => {
  const open =
    `{"v":1,"seq":12,"ts":1700000000000,"type":"signal","signal":"INT","origin":"user","synced":9`;
  const crc = crc32(open).toString(16).padStart(8, "0");
  const { bytes } = encodeLine(HEAD, { type: "signal", signal: "INT", origin: "user" }, {});
  assert.equal(decode(bytes), `${open},"crc":"${crc}"}\n`);
});

Deno.test("type comes first, whatever the order of the body's members", () => {
  const body: EntryBody = { signal: "INT", origin: "user", type: "signal" };
  assert.match(decode(lineOf(body)), /"ts":1700000000000,"type":"signal","signal"/);
});

Deno.test("a line reads back as its entry", () => {
  const body = result("t1.0", 'text with "quotes", ,"crc":"00000000"} and \n newline');
  const line = lineOf(body);
  assert.deepEqual(inspectLine(line), { kind: "record", seq: 12, synced: 9 });
  assert.deepEqual(decodeLine(line), {
    entry: { v: 1, seq: 12, ts: 1_700_000_000_000, ...body, synced: 9 },
    blobs: undefined,
  });
});

Deno.test("strings in blobs are empty in the line, and named by pointer", () => {
  const blobs = { "/content/0/text": { sha256: "ab", bytes: 70_000 } };
  const { bytes, body } = encodeLine(HEAD, result("t1.0", "long"), blobs);
  assert.deepEqual(body, result("t1.0", "long"));
  assert.match(
    decode(bytes),
    /"text":""}\],"blobs":{"\/content\/0\/text":{"sha256":"ab","bytes":70000}},"synced":9,/,
  );
  assert.deepEqual(decodeLine(bytes.subarray(0, -1)).blobs, blobs);
});

Deno.test("[D11] a lone surrogate becomes U+FFFD; text that only looks like one stays", () => {
  const { bytes, body } = encodeLine(HEAD, result("t1.0", "\ud83d"), {});
  assert.deepEqual(body, result("t1.0", "\ufffd"));
  assert.ok(!decode(bytes).includes("\\ud"));
  const same = result("t1.0", "\\ud83d");
  assert.equal(encodeLine(HEAD, same, {}).body, same);
  const key: EntryBody = { ...reply("x"), message: { ["\udc00"]: 1 } };
  assert.deepEqual(encodeLine(HEAD, key, {}).body, { ...reply("x"), message: { "\ufffd": 1 } });
});

Deno.test("every flipped bit of a line is noticed", () => {
  const line = lineOf(intent("t1.0"));
  for (let offset = 0; offset < line.length; offset += 1) {
    for (let bit = 0; bit < 8; bit += 1) {
      const changed = line.slice();
      changed[offset] = (changed[offset] ?? 0) ^ (1 << bit);
      assert.equal(inspectLine(changed).kind, "damaged", `byte ${offset} bit ${bit}`);
    }
  }
});

Deno.test("every cut line is noticed", () => {
  const line = lineOf(intent("t1.0"));
  for (let length = 0; length < line.length; length += 1) {
    assert.equal(inspectLine(line.subarray(0, length)).kind, "damaged", `${length} bytes`);
  }
});

Deno.test("a checksum in upper case isn't one", () => {
  const sealed = decode(sealJson(`{"a":"of value"`)).trimEnd();
  assert.ok(isSealed(encode(sealed)));
  const upper = sealed.replace(/"([0-9a-f]{8})"}$/, (_, crc) => `"${crc.toUpperCase()}"}`);
  assert.notEqual(upper, sealed);
  assert.equal(isSealed(encode(upper)), false);
});

Deno.test("a newer version is told by number, if its checksum is right", () => {
  const line = sealJson(`{"v":7,"something":"else"`).subarray(0, -1);
  assert.deepEqual(inspectLine(line), { kind: "newer", version: 7 });
  const flipped = lineOf(intent("t1.0"));
  flipped[5] = 0x33;
  assert.equal(inspectLine(flipped).kind, "damaged");
});

Deno.test("sealed lines that no journal writes are damaged", () => {
  for (
    const open of [
      `{"seq":1,"ts":1,"type":"x","synced":0`,
      `{"v":1,"ts":1,"seq":1,"synced":0`,
      `{"v":1,"seq":1,"synced":0`,
      `{"v":1,"seq":1,"ts":1,"type":"x"`,
      `{"v":1,"seq":1,"ts":1,"type":"x","synced":`,
      `{"v":1,"seq":1,"ts":1,"type":"x","synced":1`,
      `{"v":1,"seq":99999999999999999999,"ts":1,"type":"x","synced":1`,
    ]
  ) assert.equal(inspectLine(sealJson(open).subarray(0, -1)).kind, "damaged", open);
});

Deno.test("an unknown type and bad UTF-8 are refused, however right their checksum", () => {
  const unknown = sealJson(`{"v":1,"seq":1,"ts":1,"type":"toString","synced":0`).subarray(0, -1);
  assert.equal(inspectLine(unknown).kind, "record");
  assert.throws(() => decodeLine(unknown), /entry type "toString" isn't known/);
  const open = encode(`{"v":1,"seq":1,"ts":1,"type":"signal","x":"?","synced":0`);
  open[open.indexOf(0x3f)] = 0xff;
  const crc = crc32(open).toString(16).padStart(8, "0");
  const line = new Uint8Array([...open, ...encode(`,"crc":"${crc}"}`)]);
  assert.equal(inspectLine(line).kind, "record");
  assert.throws(() => decodeLine(line), TypeError);
});

Deno.test("a record followed by something else than a newline is found", () => {
  const line = lineOf(result("t1.0", `,"crc":"12345678"} is text here`));
  assert.equal(leadingRecord(new Uint8Array([...line, 0x0b])), line.length);
  assert.equal(leadingRecord(new Uint8Array([...line, ...line.subarray(0, 50)])), line.length);
  assert.equal(leadingRecord(line.subarray(0, -1)), undefined);
  assert.equal(leadingRecord(new Uint8Array()), undefined);
});
