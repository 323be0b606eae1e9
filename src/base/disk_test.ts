import assert from "node:assert/strict";
import { testStorage } from "../../tests/suites/storage_suite.ts";
import { disk, storageError } from "./disk.ts";
import { formatError } from "./errors.ts";

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

/** Starts children without end, each on a thread that another thread's open files are copied from. */
const SPAWNER = `data:application/javascript,
  for (;;) await new Deno.Command("true", { stdin: "null", stdout: "null" }).output();
`;

Deno.test("a lock is free once its file is closed, also while children are being started", async () => {
  await inTemporaryFolder(async (folder) => {
    const spawner = new Worker(SPAWNER, { type: "module" });
    try {
      const endMs = performance.now() + 500;
      for (let rounds = 0; rounds < 200 || performance.now() < endMs; rounds += 1) {
        const file = await disk.open(`${folder}/lock`, { create: true });
        assert.ok(file.tryLock("exclusive"), `round ${rounds}`);
        file.close();
      }
    } finally {
      spawner.terminate();
    }
  });
});

/** Appends to /dev/full, which takes no byte, as a full disk does. In a process of its own, since only one with all permissions may open it. */
const FULL_DISK_PROGRAM = `
  import { disk } from "${new URL("./disk.ts", import.meta.url)}";
  const file = await disk.open("/dev/full");
  try {
    file.append(new Uint8Array(10));
  } catch ({ code, syscall, device, message, hint }) {
    console.log(JSON.stringify({ code, syscall, device, message, hint }));
  }
`;

Deno.test("[A21] a full disk is RESOURCE_EXHAUSTED and says so", async () => {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", FULL_DISK_PROGRAM],
    stdout: "piped",
  }).output();
  const error = JSON.parse(new TextDecoder().decode(stdout));
  assert.deepEqual([error.code, error.syscall, error.device], [
    "RESOURCE_EXHAUSTED",
    "Write",
    "/dev/full",
  ]);
  assert.match(error.message, /No space left/);
  assert.match(error.hint, /Free space/);
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

Deno.test("stat doesn't follow links, statTarget does", async () => {
  await inTemporaryFolder(async (folder) => {
    await Deno.symlink(`${folder}/nowhere`, `${folder}/link`);
    assert.equal((await disk.stat(`${folder}/link`))?.kind, "link");
    assert.equal(await disk.statTarget(`${folder}/link`), undefined);
    await Deno.mkdir(`${folder}/nowhere`);
    assert.equal((await disk.statTarget(`${folder}/link`))?.kind, "folder");
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

Deno.test("a failure of the runtime's own is told without its path, its number and its flags", () => {
  const refused = new Deno.errors.NotCapable(
    'Requires read access to "/proc/1/mem", run again with the --allow-all flag',
  );
  const error = storageError(refused, "Open", "/proc/1/mem");
  assert.equal(error.code, "PERMISSION");
  assert.doesNotMatch(formatError(error), /allow-all|Requires/);
  const odd = new Error("Text file busy (os error 26): open '/a/b'");
  assert.equal(storageError(odd, "Open", "/a/b").message, "Text file busy");
  const full = Object.assign(new Error("x"), { code: "ENOSPC" });
  assert.equal(storageError(full, "Write", "/a").message, "No space left on device");
  const denied = Object.assign(new Error("x"), { code: "EACCES" });
  assert.match(storageError(denied, "Read", "/a").hint ?? "", /able to read it/);
  assert.match(storageError(denied, "Write", "/a").hint ?? "", /able to write there/);
});
