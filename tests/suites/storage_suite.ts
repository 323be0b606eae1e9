/** What every `Storage` has to do; run for the real disk and for the faulty one. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { Storage } from "../../src/base/storage.ts";

/** A storage and an empty folder in it. */
export interface StorageUnderTest {
  storage: Storage;
  folder: string;
  clean(): Promise<void>;
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

async function failsWith(code: string, work: () => Promise<unknown>): Promise<void> {
  await assert.rejects(work, (thrown: unknown) => {
    assert.ok(thrown instanceof SysError, String(thrown));
    assert.equal(thrown.code, code);
    assert.notEqual(thrown.device, undefined);
    return true;
  });
}

type Case = [name: string, check: (storage: Storage, folder: string) => Promise<void>];

const CASES: Case[] = [
  ["appends at the end, whatever was read before", async (storage, folder) => {
    const file = await storage.open(`${folder}/a`, { create: true });
    file.append(encode("one "));
    assert.equal(decode(await file.readAt(0, 2)), "on");
    file.append(encode("two"));
    await file.sync();
    assert.equal(file.size(), 7);
    assert.equal(decode(await file.readAt(2, 100)), "e two");
    assert.equal(decode(await file.readAt(7, 10)), "");
    file.close();
    file.close();
    assert.equal(decode(await storage.read(`${folder}/a`)), "one two");
  }],
  ["an old file is appended to when it is opened again", async (storage, folder) => {
    const first = await storage.open(`${folder}/a`, { create: true });
    first.append(encode("x"));
    first.close();
    const second = await storage.open(`${folder}/a`);
    second.append(encode("y"));
    second.close();
    assert.equal(decode(await storage.read(`${folder}/a`)), "xy");
  }],
  ["truncates and goes on at the new end", async (storage, folder) => {
    const file = await storage.open(`${folder}/a`, { create: true });
    file.append(encode("abcdef"));
    await file.truncate(2);
    file.append(encode("X"));
    await file.sync();
    assert.equal(decode(await storage.read(`${folder}/a`)), "abX");
    file.close();
  }],
  ["overwrites in place, under the same open file", async (storage, folder) => {
    const file = await storage.open(`${folder}/a`, { create: true });
    file.append(encode("long content"));
    file.overwrite(encode("short"));
    assert.equal(decode(await storage.read(`${folder}/a`)), "short");
    assert.equal(file.isCurrent(), true);
    file.close();
  }],
  ["what is opened to read can be read and locked for reading, and not changed", async (
    storage,
    folder,
  ) => {
    await failsWith("NOT_FOUND", () => storage.openToRead(`${folder}/no`));
    const written = await storage.open(`${folder}/a`, { create: true });
    written.append(encode("abc"));
    const read = await storage.openToRead(`${folder}/a`);
    assert.equal(decode(await read.readAt(1, 9)), "bc");
    assert.equal(read.size(), 3);
    assert.ok(read.isCurrent());
    assert.ok(read.tryLock("shared"));
    assert.equal(written.tryLock("exclusive"), false);
    read.unlock();
    assert.ok(written.tryLock("exclusive"));
    assert.equal(read.tryLock("shared"), false);
    await failsWith("PERMISSION", () => Promise.resolve().then(() => read.append(encode("x"))));
    await failsWith("PERMISSION", () => Promise.resolve().then(() => read.overwrite(encode("x"))));
    await failsWith("PERMISSION", () => read.truncate(0));
    assert.equal(decode(await storage.read(`${folder}/a`)), "abc");
    read.close();
    written.close();
  }],
  ["a failure tells its cause without the path, which is its device", async (storage, folder) => {
    await assert.rejects(storage.read(`${folder}/no`), (thrown: unknown) => {
      assert.ok(thrown instanceof SysError);
      assert.equal(thrown.device, `${folder}/no`);
      assert.doesNotMatch(thrown.message, /no'|os error|allow-/);
      return true;
    });
  }],
  ["missing things are NOT_FOUND, or undefined to stat", async (storage, folder) => {
    await failsWith("NOT_FOUND", () => storage.open(`${folder}/no`));
    await failsWith("NOT_FOUND", () => storage.open(`${folder}/no/deep`, { create: true }));
    await failsWith("NOT_FOUND", () => storage.read(`${folder}/no`));
    await failsWith("NOT_FOUND", () => storage.list(`${folder}/no`));
    await failsWith("NOT_FOUND", () => storage.remove(`${folder}/no`));
    await failsWith("NOT_FOUND", () => storage.rename(`${folder}/no`, `${folder}/a`));
    await failsWith("NOT_FOUND", () => storage.syncFolder(`${folder}/no`));
    assert.equal(await storage.stat(`${folder}/no`), undefined);
    assert.equal(await storage.stat(`${folder}/no/deep`), undefined);
    assert.equal(await storage.stat(`${folder}/${"a".repeat(300)}`), undefined);
  }],
  ["createNew refuses what is there", async (storage, folder) => {
    const file = await storage.open(`${folder}/a`, { createNew: true });
    await failsWith("INVALID", () => storage.open(`${folder}/a`, { createNew: true }));
    file.close();
  }],
  ["lists sorted names; renames replace; folders are made with their parents", async (
    storage,
    folder,
  ) => {
    await storage.makeFolder(`${folder}/x/y`, 0o700);
    await storage.makeFolder(`${folder}/x/y`, 0o700);
    for (const name of ["b", "a", "c"]) {
      const file = await storage.open(`${folder}/x/${name}`, { create: true });
      file.append(encode(name));
      file.close();
    }
    await storage.rename(`${folder}/x/b`, `${folder}/x/a`);
    assert.deepEqual(await storage.list(`${folder}/x`), ["a", "c", "y"]);
    assert.equal(decode(await storage.read(`${folder}/x/a`)), "b");
    await storage.syncFolder(`${folder}/x`);
    await assert.rejects(storage.remove(`${folder}/x`));
    await storage.remove(`${folder}/x`, { recursive: true });
    assert.deepEqual(await storage.list(folder), []);
  }],
  ["stat tells kind, size and mode", async (storage, folder) => {
    const file = await storage.open(`${folder}/a`, { create: true, mode: 0o600 });
    file.append(encode("12345"));
    file.close();
    const facts = await storage.stat(`${folder}/a`);
    assert.equal(facts?.kind, "file");
    assert.equal(facts.sizeBytes, 5);
    assert.equal(facts.mode, 0o600);
    await storage.makeFolder(`${folder}/f`, 0o700);
    assert.equal((await storage.stat(`${folder}/f`))?.kind, "folder");
    assert.equal((await storage.stat(`${folder}/f`))?.mode, 0o700);
  }],
  ["a hard link is the same file", async (storage, folder) => {
    const file = await storage.open(`${folder}/a`, { create: true });
    await storage.hardLink(`${folder}/a`, `${folder}/b`);
    file.append(encode("later"));
    file.close();
    assert.equal(decode(await storage.read(`${folder}/b`)), "later");
    await failsWith("INVALID", () => storage.hardLink(`${folder}/a`, `${folder}/b`));
    await storage.remove(`${folder}/a`);
    assert.equal(decode(await storage.read(`${folder}/b`)), "later");
  }],
  [
    "what is there can be written once more in place, and appends go on at the end",
    async (storage, folder) => {
      const file = await storage.open(`${folder}/a`, { create: true });
      file.append(encode("one two three"));
      file.rewrite(4, encode("two"));
      file.append(encode(" four"));
      await file.sync();
      assert.equal(decode(await storage.read(`${folder}/a`)), "one two three four");
      file.close();
    },
  ],
  ["an exclusive lock shuts out others until it is freed", async (storage, folder) => {
    const path = `${folder}/lock`;
    const one = await storage.open(path, { create: true });
    const two = await storage.open(path);
    assert.equal(one.tryLock("exclusive"), true);
    assert.equal(two.tryLock("exclusive"), false);
    assert.equal(two.tryLock("shared"), false);
    one.unlock();
    assert.equal(two.tryLock("exclusive"), true);
    assert.equal(one.tryLock("shared"), false);
    two.close();
    assert.equal(one.tryLock("exclusive"), true);
    one.close();
  }],
  ["shared locks go together, and shut out an exclusive one", async (storage, folder) => {
    const path = `${folder}/lock`;
    const one = await storage.open(path, { create: true });
    const two = await storage.open(path);
    const three = await storage.open(path);
    assert.equal(one.tryLock("shared"), true);
    assert.equal(two.tryLock("shared"), true);
    assert.equal(three.tryLock("exclusive"), false);
    one.close();
    two.close();
    assert.equal(three.tryLock("exclusive"), true);
    three.close();
  }],
  ["an open file knows when its path stands for another, or for none", async (storage, folder) => {
    const path = `${folder}/a`;
    const file = await storage.open(path, { create: true });
    assert.equal(file.isCurrent(), true);
    await storage.rename(path, `${folder}/b`);
    assert.equal(file.isCurrent(), false);
    assert.equal(file.isCurrent(`${folder}/b`), true);
    const other = await storage.open(path, { create: true });
    assert.equal(file.isCurrent(), false);
    assert.equal(other.isCurrent(), true);
    file.close();
    other.close();
  }],
  ["a file under a folder that was replaced isn't current", async (storage, folder) => {
    await storage.makeFolder(`${folder}/run`, 0o700);
    const file = await storage.open(`${folder}/run/lock`, { create: true });
    await storage.rename(`${folder}/run`, `${folder}/old`);
    await storage.makeFolder(`${folder}/run`, 0o700);
    const other = await storage.open(`${folder}/run/lock`, { create: true });
    assert.equal(file.isCurrent(), false);
    file.close();
    other.close();
  }],
];

/** Registers the suite for one kind of storage. */
export function testStorage(kind: string, make: () => Promise<StorageUnderTest>): void {
  for (const [name, check] of CASES) {
    Deno.test(`${kind}: ${name}`, async () => {
      const { storage, folder, clean } = await make();
      try {
        await check(storage, folder);
      } finally {
        await clean();
      }
    });
  }
}
