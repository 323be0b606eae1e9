import assert from "node:assert/strict";
import { FaultyDisk, KEPT, LOST, seeded } from "../../tests/doubles/faulty_disk.ts";
import { makeDurableFolder, readJsonStateFile, writeStateFile } from "./state_file.ts";

const text = (disk: FaultyDisk, path: string): string => new TextDecoder().decode(disk.peek(path));

async function diskWithFolder(): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  await makeDurableFolder(disk, "/state/rnix", 0o700);
  return disk;
}

Deno.test("a state file is whole after a crash at any operation: old or new, never between", async () => {
  for (const when of ["before", "after"] as const) {
    for (let at = 1; at <= 5; at += 1) {
      for (const choice of [LOST, KEPT, seeded(at), seeded(at + 100)]) {
        const first = await diskWithFolder();
        await writeStateFile(first, "/state/rnix/pids.json", `{"old":true}`);
        const disk = first.crash(LOST, { stop: { at, when } });
        void writeStateFile(disk, "/state/rnix/pids.json", `{"new":"longer than before"}`);
        await disk.whenStopped;
        const found = text(disk.crash(choice), "/state/rnix/pids.json");
        assert.ok([`{"old":true}`, `{"new":"longer than before"}`].includes(found), found);
      }
    }
  }
});

Deno.test("a state file is durable once its writing has resolved", async () => {
  const disk = await diskWithFolder();
  await writeStateFile(disk, "/state/rnix/a.json", "1");
  assert.equal(text(disk.crash(LOST), "/state/rnix/a.json"), "1");
});

Deno.test("a failed write leaves the old state file and no temporary one", async () => {
  for (let at = 1; at <= 4; at += 1) {
    const disk = await diskWithFolder();
    await writeStateFile(disk, "/state/rnix/a.json", "old");
    disk.plan = { fail: { at: disk.operations.length + at, fault: "full" } };
    await assert.rejects(writeStateFile(disk, "/state/rnix/a.json", "new"), {
      code: "RESOURCE_EXHAUSTED",
      device: "/state/rnix/a.json",
    });
    assert.deepEqual(await disk.list("/state/rnix"), ["a.json"]);
    assert.equal(text(disk, "/state/rnix/a.json"), "old");
  }
});

Deno.test("a temporary file that a crash left is stepped over", async () => {
  const disk = await diskWithFolder();
  disk.plan = { stop: { at: disk.operations.length + 2, when: "after" } };
  void writeStateFile(disk, "/state/rnix/a.json", "lost");
  await disk.whenStopped;
  const found = disk.crash(KEPT);
  await writeStateFile(found, "/state/rnix/a.json", "kept");
  assert.equal(text(found, "/state/rnix/a.json"), "kept");
});

Deno.test("a state file gets the mode that was asked for", async () => {
  const disk = await diskWithFolder();
  await writeStateFile(disk, "/state/rnix/token", "x", 0o600);
  assert.equal((await disk.stat("/state/rnix/token"))?.mode, 0o600);
});

Deno.test("a state file that can't be parsed is an error and stays as it is", async () => {
  const disk = await diskWithFolder();
  for (const content of ["", "{", new Uint8Array([0x22, 0xff, 0x22])]) {
    await writeStateFile(disk, "/state/rnix/trust.json", content);
    const before = disk.peek("/state/rnix/trust.json");
    await assert.rejects(readJsonStateFile(disk, "/state/rnix/trust.json"), {
      code: "INVALID",
      device: "/state/rnix/trust.json",
      hint: /left as it is/,
    });
    assert.deepEqual(disk.peek("/state/rnix/trust.json"), before);
  }
});

Deno.test("a state file is read as JSON, a missing one as undefined", async () => {
  const disk = await diskWithFolder();
  assert.equal(await readJsonStateFile(disk, "/state/rnix/a.json"), undefined);
  await writeStateFile(disk, "/state/rnix/a.json", `{"a":[1]}`);
  assert.deepEqual(await readJsonStateFile(disk, "/state/rnix/a.json"), { a: [1] });
});

Deno.test("a durable folder is there after a crash, with all that was made above it", async () => {
  const disk = new FaultyDisk();
  await makeDurableFolder(disk, "/home/user/state/runs/one", 0o700);
  const found = disk.crash(LOST);
  assert.equal((await found.stat("/home/user/state/runs/one"))?.kind, "folder");
});
