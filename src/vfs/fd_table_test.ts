import assert from "node:assert/strict";
import type { Json } from "../base/json.ts";
import type { CallOptions, DeviceFile } from "./device.ts";
import { FD_FIRST, FdTable } from "./fd_table.ts";

function file(): DeviceFile & { closes: number } {
  const self = {
    closes: 0,
    write: () => Promise.reject(new Error("Not written to")),
    read: () => Promise.resolve(new Uint8Array()),
    close: () => void (self.closes += 1),
  };
  return self;
}

Deno.test("descriptors begin at 3, and the lowest free one is given", () => {
  const table = new FdTable();
  assert.equal(FD_FIRST, 3);
  assert.deepEqual([table.open(file()), table.open(file()), table.open(file())], [3, 4, 5]);
  table.close(4);
  table.close(3);
  assert.deepEqual([table.open(file()), table.open(file()), table.open(file())], [3, 4, 6]);
});

Deno.test("a descriptor that isn't open is INVALID", () => {
  const table = new FdTable();
  const fd = table.open(file());
  table.close(fd);
  for (const wrong of [fd, 0, -1, 99]) {
    assert.throws(() => table.get(wrong), {
      code: "INVALID",
      message: `Descriptor ${wrong} is not open`,
    });
  }
});

Deno.test("closing closes the file once, however often it is asked", () => {
  const table = new FdTable();
  const one = file();
  const fd = table.open(one);
  assert.equal(table.get(fd), one);
  table.close(fd);
  table.close(fd);
  table.close(0);
  table.close(77);
  assert.equal(one.closes, 1);
  assert.equal(table.open(file()), fd);
});

Deno.test("closing all leaves nothing open", () => {
  const table = new FdTable();
  const files = [file(), file(), file()];
  for (const one of files) table.open(one);
  table.close(4);
  table.closeAll();
  assert.deepEqual(files.map(({ closes }) => closes), [1, 1, 1]);
  assert.throws(() => table.get(3), { code: "INVALID" });
});

function holding(...contents: string[]): DeviceFile & { reads: number; written: Json[] } {
  const self = {
    reads: 0,
    written: [] as Json[],
    write: (input: Json) => {
      self.written.push(input);
      return Promise.resolve({ kind: "answer" as const, isError: false, content: [] });
    },
    read: () =>
      Promise.resolve(new TextEncoder().encode(contents[self.reads++] ?? "none is planned")),
    close: () => {},
  };
  return self;
}

const OPTIONS: CallOptions = {
  signal: new AbortController().signal,
  cancelGraceMs: 0,
  callId: "t1.1",
  idempotencyKey: "k",
};

const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

Deno.test("[R2] a file is read in pieces that belong together, and gives nothing at its end", async () => {
  const table = new FdTable();
  const file = holding("0123456789", "another content");
  const fd = table.open(file);
  assert.equal(textOf(await table.read(fd, 4)), "0123");
  assert.equal(textOf(await table.read(fd, 4)), "4567");
  assert.equal(textOf(await table.read(fd, 4)), "89");
  assert.equal(textOf(await table.read(fd, 4)), "");
  assert.equal(file.reads, 1, "the device was asked once");
  assert.equal(textOf(await table.read(table.open(file), 99)), "another content");
});

Deno.test("[R2] a write begins what is read anew", async () => {
  const table = new FdTable();
  const file = holding("first", "second");
  const fd = table.open(file);
  assert.equal(textOf(await table.read(fd, 3)), "fir");
  await table.write(fd, { a: 1 }, OPTIONS);
  assert.deepEqual(file.written, [{ a: 1 }]);
  assert.equal(textOf(await table.read(fd, 99)), "second");
});

Deno.test("[R2] what is closed while it is read gives nothing of itself, also where its descriptor is another's", async () => {
  const table = new FdTable();
  const [slow, given] = [holding(), Promise.withResolvers<Uint8Array>()];
  slow.read = () => given.promise;
  const fd = table.open(slow);
  const reading = table.read(fd, 10);
  table.close(fd);
  assert.equal(table.open(holding("of another")), fd);
  given.resolve(new TextEncoder().encode("of the closed one"));
  await assert.rejects(reading, { code: "INVALID", message: `Descriptor ${fd} is not open` });
  assert.equal(textOf(await table.read(fd, 99)), "of another");
  assert.throws(() => table.write(99, {}, OPTIONS), { code: "INVALID" });
  await assert.rejects(table.read(99, 1), { code: "INVALID" });
});

Deno.test("a read that failed is tried again by the next", async () => {
  const table = new FdTable();
  const file = holding("there now");
  const { read } = file;
  file.read = () => Promise.reject(new Error("Not yet"));
  const fd = table.open(file);
  await assert.rejects(table.read(fd, 9), /Not yet/);
  file.read = read;
  assert.equal(textOf(await table.read(fd, 9)), "there now");
});

Deno.test("what is open is listed with its path", () => {
  const table = new FdTable();
  const one = table.open(file(), "/mnt/a");
  table.open(file(), "/mnt/b");
  table.close(one);
  assert.deepEqual(table.list(), [{ fd: 4, path: "/mnt/b" }]);
});
