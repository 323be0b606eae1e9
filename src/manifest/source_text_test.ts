import assert from "node:assert/strict";
import { join } from "node:path";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import { decodeSource, readSourceText, SOURCE_BYTES_MAX } from "./source_text.ts";

const encode = (text: string) => new TextEncoder().encode(text);

Deno.test("text is taken as it is, but for a byte order mark", () => {
  assert.deepEqual(decodeSource(encode("héllo\r\n")), { kind: "text", text: "héllo\r\n" });
  assert.deepEqual(decodeSource(encode("\ufeffname: a")), { kind: "text", text: "name: a" });
  assert.deepEqual(decodeSource(new Uint8Array()), { kind: "text", text: "" });
});

Deno.test("binary and wrongly encoded files are told with the line", () => {
  const place = (bytes: Uint8Array) => {
    const source = decodeSource(bytes);
    assert.ok(source.kind === "unusable");
    return [source.position.line, source.position.column, source.message.split(" ")[3]];
  };
  assert.deepEqual(place(Uint8Array.of(0)), [1, 1, "binary"]);
  assert.deepEqual(place(encode("a\nb\nc\0")), [3, 2, "binary"]);
  assert.deepEqual(place(Uint8Array.of(0x61, 0x0a, 0xff)), [2, 1, "UTF-8;"]);
  assert.deepEqual(place(Uint8Array.of(0xc3)), [1, 1, "UTF-8;"], "cut in a character");
  assert.deepEqual(place(Uint8Array.of(0xc3, 0x0a, 0xa9)), [1, 1, "UTF-8;"]);
  assert.deepEqual(
    place(encode("x".repeat(SOURCE_BYTES_MAX + 1)))[2],
    String(SOURCE_BYTES_MAX + 1),
  );
});

Deno.test("a file of exactly the largest size is read", () => {
  assert.equal(decodeSource(encode("x".repeat(SOURCE_BYTES_MAX))).kind, "text");
});

Deno.test("what can't be read is told, never thrown", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = join(folder, "a.yaml");
    assert.deepEqual(await readSourceText(disk, path), { kind: "absent" });
    assert.equal((await readSourceText(disk, folder)).kind, "unusable");
    await Deno.symlink(join(folder, "gone"), path);
    const dangling = await readSourceText(disk, path);
    assert.ok(dangling.kind === "unusable" && dangling.message === "This link leads nowhere");
    const forbiddenPath = join(folder, "b.yaml");
    await Deno.writeTextFile(forbiddenPath, "a");
    const failing: Storage = {
      ...disk,
      read: () => Promise.reject(new SysError("PERMISSION", "no right to do so")),
    };
    const forbidden = await readSourceText(failing, forbiddenPath);
    assert.ok(forbidden.kind === "unusable");
    assert.equal(forbidden.message, "The file can't be read: no right to do so");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a link is judged by what it leads to: a device or a pipe is not read at all, a file is", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const unread: Storage = { ...disk, read: () => Promise.reject(new Error("was read")) };
    const pipe = join(folder, "pipe");
    await new Deno.Command("mkfifo", { args: [pipe] }).output();
    const large = join(folder, "large");
    await Deno.writeTextFile(large, "");
    await Deno.truncate(large, SOURCE_BYTES_MAX + 1);
    const cases: [target: string, message: RegExp][] = [
      [pipe, /not a regular file/],
      ["/dev/zero", /not a regular file/],
      [large, /at most 1048576 are read/],
      [folder, /a folder/],
    ];
    for (const [index, [target, message]] of cases.entries()) {
      const link = join(folder, `link-${index}`);
      await Deno.symlink(target, link);
      const source = await readSourceText(unread, link);
      assert.ok(source.kind === "unusable", target);
      assert.match(source.message, message, target);
    }
    const file = join(folder, "file");
    await Deno.writeTextFile(file, "name: a");
    await Deno.symlink(file, join(folder, "link"));
    const followed = await readSourceText(disk, join(folder, "link"));
    assert.deepEqual(followed, { kind: "text", text: "name: a" });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a file too large is not read at all", async () => {
  const large: Storage = {
    ...disk,
    stat: () =>
      Promise.resolve({
        ...{ kind: "file", sizeBytes: 2 ** 40, modifiedMs: 0, mode: undefined, uid: undefined },
      }),
    read: () => Promise.reject(new Error("was read")),
  };
  const source = await readSourceText(large, "/x");
  assert.ok(source.kind === "unusable");
  assert.match(source.message, /The file has 1099511627776 bytes; at most 1048576 are read/);
});
