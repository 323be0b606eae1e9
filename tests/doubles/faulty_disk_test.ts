import assert from "node:assert/strict";
import { testStorage } from "../suites/storage_suite.ts";
import { FaultyDisk, KEPT, keptInPart, LOST, seeded, StopError } from "./faulty_disk.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (disk: FaultyDisk, path: string): string => new TextDecoder().decode(disk.peek(path));

testStorage("faulty disk", async () => {
  const storage = new FaultyDisk();
  await storage.makeFolder("/f", 0o700);
  return { storage, folder: "/f", clean: () => Promise.resolve() };
});

async function diskWithFile(content: string) {
  const disk = new FaultyDisk();
  await disk.makeFolder("/f", 0o700);
  const file = await disk.open("/f/a", { create: true });
  file.append(encode(content));
  await file.sync();
  await disk.syncFolder("/f");
  await disk.syncFolder("/");
  return { disk, file };
}

Deno.test("unsynced bytes are lost, kept, or kept in part, as chosen", async () => {
  const { disk, file } = await diskWithFile("durable ");
  file.append(encode("maybe"));
  assert.equal(text(disk.crash(LOST), "/f/a"), "durable ");
  assert.equal(text(disk.crash(KEPT), "/f/a"), "durable maybe");
  assert.equal(text(disk.crash(keptInPart(2)), "/f/a"), "durable ma");
  assert.equal(text(disk.crash(seeded(5)), "/f/a"), text(disk.crash(seeded(5)), "/f/a"));
  const lengths = new Set(
    [1, 2, 3, 4, 5, 6, 7].map((seed) => text(disk.crash(seeded(seed)), "/f/a")),
  );
  assert.ok(lengths.size > 1);
});

Deno.test("a name is lost unless its folder was synced", async () => {
  const { disk } = await diskWithFile("x");
  const file = await disk.open("/f/new", { create: true });
  file.append(encode("synced"));
  await file.sync();
  assert.equal(await disk.crash(LOST).stat("/f/new"), undefined);
  assert.equal(text(disk.crash(KEPT), "/f/new"), "synced");
  await disk.syncFolder("/f");
  assert.equal(text(disk.crash(LOST), "/f/new"), "synced");
});

Deno.test("a rename is lost or kept as a whole", async () => {
  const { disk } = await diskWithFile("old");
  const file = await disk.open("/f/b", { create: true });
  file.append(encode("new"));
  await file.sync();
  await disk.syncFolder("/f");
  await disk.rename("/f/b", "/f/a");
  const lost = disk.crash(LOST);
  assert.deepEqual(await lost.list("/f"), ["a", "b"]);
  assert.equal(text(lost, "/f/a"), "old");
  const kept = disk.crash(KEPT);
  assert.deepEqual(await kept.list("/f"), ["a"]);
  assert.equal(text(kept, "/f/a"), "new");
});

Deno.test("a truncation that wasn't synced may come undone", async () => {
  const { disk, file } = await diskWithFile("abcdef");
  await file.truncate(2);
  file.append(encode("X"));
  assert.equal(text(disk.crash(LOST), "/f/a"), "abcdef");
  assert.equal(text(disk.crash(KEPT), "/f/a"), "abX");
  await file.sync();
  assert.equal(text(disk.crash(LOST), "/f/a"), "abX");
});

Deno.test("a crash leaves the disk itself as it was, and frees locks", async () => {
  const { disk, file } = await diskWithFile("abc");
  assert.equal(file.tryLock("exclusive"), true);
  file.append(encode("def"));
  const other = await disk.crash(LOST).open("/f/a");
  assert.equal(other.tryLock("exclusive"), true);
  other.append(encode("!"));
  assert.equal(text(disk, "/f/a"), "abcdef");
  assert.equal((await disk.open("/f/a")).tryLock("shared"), false);
});

Deno.test("after the death of the process alone, bytes are there and still not durable", async () => {
  const { disk, file } = await diskWithFile("abc");
  file.append(encode("def"));
  const killed = disk.kill();
  assert.equal(text(killed, "/f/a"), "abcdef");
  assert.equal(text(killed.crash(LOST), "/f/a"), "abc");
  const again = await killed.open("/f/a");
  await again.sync();
  assert.equal(text(killed.crash(LOST), "/f/a"), "abcdef");
});

Deno.test("the world stops before or after an operation, and nothing works any more", async () => {
  for (const when of ["before", "after"] as const) {
    const { disk, file } = await diskWithFile("abc");
    disk.plan = { stop: { at: disk.operations.length + 1, when } };
    assert.throws(() => file.append(encode("def")), StopError);
    await disk.whenStopped;
    assert.equal(disk.isStopped, true);
    assert.throws(() => file.append(encode("ghi")), StopError);
    let ended = false;
    for (const work of [file.sync(), disk.read("/f/a"), disk.open("/f/b", { create: true })]) {
      work.finally(() => ended = true);
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.equal(ended, false);
    assert.equal(text(disk.crash(KEPT), "/f/a"), when === "before" ? "abc" : "abcdef");
  }
});

Deno.test("a stop after a sync leaves the bytes durable, one before it doesn't", async () => {
  for (const when of ["before", "after"] as const) {
    const { disk, file } = await diskWithFile("abc");
    file.append(encode("def"));
    disk.plan = { stop: { at: disk.operations.length + 1, when } };
    void file.sync();
    await disk.whenStopped;
    assert.equal(text(disk.crash(LOST), "/f/a"), when === "before" ? "abc" : "abcdef");
  }
});

Deno.test("the n-th operation fails as planned, a full disk after a part of the bytes", async () => {
  const { disk, file } = await diskWithFile("abc");
  const next = disk.operations.length + 1;
  disk.plan = { fail: { at: next, fault: "full" } };
  assert.throws(() => file.append(encode("defg")), { code: "RESOURCE_EXHAUSTED" });
  assert.equal(text(disk, "/f/a"), "abcde");
  file.append(encode("!"));
  disk.plan = { fail: { at: next + 2, fault: "read-only", forGood: true } };
  await assert.rejects(disk.remove("/f/a"), { code: "PERMISSION" });
  await assert.rejects(disk.remove("/f/a"), { code: "PERMISSION" });
  assert.deepEqual(disk.operations.at(-1), { number: next + 3, name: "remove", path: "/f/a" });
});

Deno.test("what a failed sync dropped is gone after a crash, though later syncs succeed", async () => {
  const { disk, file } = await diskWithFile("abc");
  file.append(encode("def"));
  disk.plan = { fail: { at: disk.operations.length + 1, fault: "broken" } };
  await assert.rejects(file.sync(), { code: "DRIVER" });
  file.append(encode("ghi"));
  await file.sync();
  assert.equal(text(disk, "/f/a"), "abcdefghi");
  assert.equal(text(disk.crash(LOST), "/f/a"), "abc\0\0\0ghi");
});

Deno.test("a full disk takes what fits, and all again once there is space", async () => {
  const { disk, file } = await diskWithFile("abc");
  disk.capacityBytes = 5;
  assert.throws(() => file.append(encode("defg")), { code: "RESOURCE_EXHAUSTED" });
  assert.equal(text(disk, "/f/a"), "abcde");
  disk.capacityBytes = 100;
  file.append(encode("!"));
  assert.equal(text(disk, "/f/a"), "abcde!");
});

Deno.test("syncs can be held back; they cover what was written when they began", async () => {
  const { disk, file } = await diskWithFile("abc");
  const release = disk.holdSyncs();
  file.append(encode("def"));
  const synced = file.sync();
  file.append(encode("ghi"));
  assert.equal(text(disk.crash(LOST), "/f/a"), "abc");
  release();
  await synced;
  assert.equal(text(disk.crash(LOST), "/f/a"), "abcdef");
});
