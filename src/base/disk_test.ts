import assert from "node:assert/strict";
import { testStorage } from "../../tests/suites/storage_suite.ts";
import { disk, storageError } from "./disk.ts";

async function inTemporaryFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rnix-disk-" });
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

testStorage("real disk", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rnix-disk-" });
  return { storage: disk, folder, clean: () => Deno.remove(folder, { recursive: true }) };
});

Deno.test("[A21] a full disk is RESOURCE_EXHAUSTED and says so", async () => {
  // /dev/full takes no byte, as a full disk does.
  const file = await disk.open("/dev/full");
  try {
    assert.throws(() => file.append(new Uint8Array(10)), {
      code: "RESOURCE_EXHAUSTED",
      syscall: "Write",
      device: "/dev/full",
      message: /No space left/,
    });
  } finally {
    file.close();
  }
});

Deno.test("system errors become codes that a user knows", () => {
  const cases = [
    ["ENOSPC", "RESOURCE_EXHAUSTED"],
    ["EDQUOT", "RESOURCE_EXHAUSTED"],
    ["EROFS", "PERMISSION"],
    ["EACCES", "PERMISSION"],
    ["ENOENT", "NOT_FOUND"],
    ["EIO", "DRIVER"],
  ];
  for (const [system, code] of cases) {
    const error = storageError(Object.assign(new Error("x"), { code: system }), "Write", "/a");
    assert.equal(error.code, code, system);
  }
});

Deno.test("stat doesn't follow links", async () => {
  await inTemporaryFolder(async (folder) => {
    await Deno.symlink(`${folder}/nowhere`, `${folder}/link`);
    assert.equal((await disk.stat(`${folder}/link`))?.kind, "link");
  });
});

Deno.test("an append of many bytes is written to the end", async () => {
  await inTemporaryFolder(async (folder) => {
    const file = await disk.open(`${folder}/big`, { create: true });
    const bytes = new Uint8Array(8 * 1024 * 1024).fill(7);
    file.append(bytes);
    await file.sync();
    assert.equal(file.size(), bytes.length);
    assert.deepEqual(await file.readAt(bytes.length - 3, 10), new Uint8Array([7, 7, 7]));
    file.close();
  });
});

Deno.test("concurrent reads of one file don't mix", async () => {
  await inTemporaryFolder(async (folder) => {
    const file = await disk.open(`${folder}/a`, { create: true });
    file.append(Uint8Array.from({ length: 200 }, (_, index) => index));
    const reads = await Promise.all([0, 50, 100, 150].map((offset) => file.readAt(offset, 50)));
    assert.deepEqual(reads.map((bytes) => bytes[0]), [0, 50, 100, 150]);
    file.close();
  });
});
