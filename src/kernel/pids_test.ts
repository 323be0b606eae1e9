import assert from "node:assert/strict";
import { FaultyDisk, KEPT, LOST, seeded } from "../../tests/doubles/faulty_disk.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { Pids } from "./pids.ts";

const FILE = "/state/pids.jsonl";

async function freshDisk(): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  await disk.makeFolder("/state", 0o700);
  await disk.syncFolder("/");
  return disk;
}

Deno.test("pids begin at 1, rise, and name their runs for ever", async () => {
  const disk = await freshDisk();
  const pids = new Pids(disk, new VirtualClock(), "/state");
  assert.equal(await pids.runOf(1), undefined);
  const given = [await pids.allocate("a"), await pids.allocate("b"), await pids.allocate("a")];
  assert.deepEqual(given, [1, 2, 3]);
  assert.deepEqual([await pids.runOf(1), await pids.runOf(2), await pids.runOf(3)], [
    "a",
    "b",
    "a",
  ]);
  assert.deepEqual(await pids.newest(), new Map([["a", 3], ["b", 2]]));
});

Deno.test("many at once, in several processes, each get their own", async () => {
  const disk = await freshDisk();
  const clock = new VirtualClock();
  const processes = Array.from({ length: 4 }, () => new Pids(disk, clock, "/state"));
  const asked = processes.flatMap((pids, index) => [
    pids.allocate(`${index}a`),
    pids.allocate(`${index}b`),
  ]);
  const given = await clock.run(Promise.all(asked));
  assert.deepEqual(given.toSorted((a, b) => a - b), [1, 2, 3, 4, 5, 6, 7, 8]);
});

Deno.test("a pid that was given survives every crash, and is never given again", async () => {
  for (let at = 1; at < 30; at += 1) {
    for (const choice of [LOST, KEPT, seeded(at)]) {
      const first = await freshDisk();
      first.plan = { stop: { at: first.operations.length + at, when: "after" } };
      const given: number[] = [];
      const pids = new Pids(first, new VirtualClock(), "/state");
      const work = async () => {
        for (let index = 0; index < 5; index += 1) given.push(await pids.allocate("before"));
      };
      await Promise.race([work(), first.whenStopped]);
      const later = new Pids(first.crash(choice), new VirtualClock(), "/state");
      const next = await later.allocate("after");
      assert.ok(next > (given.at(-1) ?? 0), `${next} after ${given}, stopped at ${at}`);
      for (const pid of given) assert.equal(await later.runOf(pid), "before");
    }
  }
});

Deno.test("the file's name is durable also where another process made it and died", async () => {
  const disk = await freshDisk();
  const file = await disk.open(FILE, { create: true });
  file.close();
  const pid = await new Pids(disk, new VirtualClock(), "/state").allocate("a");
  const after = new Pids(disk.crash(LOST), new VirtualClock(), "/state");
  assert.equal(await after.runOf(pid), "a");
});

Deno.test("a torn last line was never given out, and does no harm to the next", async () => {
  const disk = await freshDisk();
  const pids = new Pids(disk, new VirtualClock(), "/state");
  await pids.allocate("a");
  await pids.allocate("b");
  const whole = disk.peek(FILE);
  for (let length = 0; length <= whole.length; length += 1) {
    const torn = disk.kill();
    torn.damage(FILE, (bytes) => bytes.subarray(0, length));
    const again = new Pids(torn, new VirtualClock(), "/state");
    const next = await again.allocate("c");
    assert.equal(await again.runOf(next), "c", `cut at ${length}`);
    assert.equal(await again.allocate("d"), next + 1);
  }
});

Deno.test("a long file is read from its end", async () => {
  const disk = await freshDisk();
  const lines = Array.from(
    { length: 5_000 },
    (_, index) => `{"pid":${index + 1},"run":"r${index + 1}"}\n`,
  );
  const file = await disk.open(FILE, { create: true });
  file.append(new TextEncoder().encode(lines.join("")));
  file.close();
  const pids = new Pids(disk, new VirtualClock(), "/state");
  assert.equal(await pids.allocate("x"), 5_001);
  assert.equal(await pids.runOf(17), "r17");
});

Deno.test("a lock that nobody frees is waited for, but not for ever", async () => {
  const disk = await freshDisk();
  const clock = new VirtualClock();
  const holder = await disk.open(FILE, { create: true });
  assert.ok(holder.tryLock("exclusive"));
  const work = new Pids(disk, clock, "/state").allocate("a");
  await assert.rejects(clock.run(work), { code: "TIMEOUT", device: FILE });
  holder.close();
  assert.equal(await clock.run(new Pids(disk, clock, "/state").allocate("a")), 1);
});
