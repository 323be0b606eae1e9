import assert from "node:assert/strict";
import type { DeviceFile } from "./device.ts";
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
