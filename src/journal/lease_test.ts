import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { RUN_FOLDER, RUN_ID, taker } from "../../tests/doubles/sample_entries.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { probeLease, takeLease } from "./lease.ts";

const LOCK = `${RUN_FOLDER}/lock`;

async function diskWithRun(): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  await disk.makeFolder(RUN_FOLDER, 0o700);
  return disk;
}

Deno.test("the lock file names the holder, and a probe finds it", async () => {
  const disk = await diskWithRun();
  assert.equal(await probeLease(disk, RUN_FOLDER), undefined);
  const lease = await takeLease(disk, RUN_FOLDER, taker(new VirtualClock(), 77));
  assert.deepEqual(JSON.parse(new TextDecoder().decode(disk.peek(LOCK))), {
    os_pid: 77,
    instance: "instance-77",
  });
  assert.deepEqual(await probeLease(disk, RUN_FOLDER), { osPid: 77, instance: "instance-77" });
  assert.equal(lease.holds(), true);
  lease.release();
  lease.release();
  assert.equal(lease.holds(), false);
  assert.equal(await probeLease(disk, RUN_FOLDER), undefined);
});

Deno.test("a probe leaves the lease free, and the holder's name as it was", async () => {
  const disk = await diskWithRun();
  (await takeLease(disk, RUN_FOLDER, taker(new VirtualClock(), 77))).release();
  const before = disk.peek(LOCK);
  await probeLease(disk, RUN_FOLDER);
  assert.deepEqual(disk.peek(LOCK), before);
  (await takeLease(disk, RUN_FOLDER, taker())).release();
});

Deno.test("a taker outwaits a reader's moment", async () => {
  const disk = await diskWithRun();
  const clock = new VirtualClock();
  const reader = await disk.open(LOCK, { create: true });
  assert.equal(reader.tryLock("shared"), true);
  const taking = takeLease(disk, RUN_FOLDER, taker(clock));
  await clock.advance(500);
  reader.close();
  const lease = await clock.run(taking);
  assert.ok(clock.monotonic() < 600);
  assert.equal(lease.holds(), true);
});

Deno.test("[A15] a taker gives up after a second and names the holder", async () => {
  const disk = await diskWithRun();
  const clock = new VirtualClock();
  await takeLease(disk, RUN_FOLDER, taker(clock, 77));
  await assert.rejects(clock.run(takeLease(disk, RUN_FOLDER, taker(clock, 88))), {
    code: "INVALID",
    exitCode: 2,
    message: `Run "${RUN_ID}" is held by process 77`,
    hint: /one owner at a time/,
  });
  assert.ok(clock.monotonic() >= 1_000 && clock.monotonic() < 1_100);
});

Deno.test("a stopped holder is told as stopped", async () => {
  for (const [state, hint] of [["T", /kill -CONT 77/], ["S", /one owner/]] as const) {
    const disk = await diskWithRun();
    await disk.makeFolder("/proc/77", 0o700);
    const stat = await disk.open("/proc/77/stat", { create: true });
    stat.append(new TextEncoder().encode(`77 (a) T (b) ${state} 1 77`));
    const clock = new VirtualClock();
    await takeLease(disk, RUN_FOLDER, taker(clock, 77));
    await assert.rejects(clock.run(takeLease(disk, RUN_FOLDER, taker(clock, 88))), { hint });
  }
});

Deno.test("a holder whose name can't be read is another process", async () => {
  const disk = await diskWithRun();
  const clock = new VirtualClock();
  await takeLease(disk, RUN_FOLDER, taker(clock, 77));
  for (const content of ["", "nonsense", "null", `{"os_pid":"x"}`]) {
    disk.damage(LOCK, () => new TextEncoder().encode(content));
    await assert.rejects(clock.run(takeLease(disk, RUN_FOLDER, taker(clock, 88))), {
      message: /held by another process/,
    });
  }
});

Deno.test("a lease ends when the lock file is replaced, and the new one can be taken", async () => {
  const disk = await diskWithRun();
  const first = await takeLease(disk, RUN_FOLDER, taker());
  await disk.remove(LOCK);
  assert.equal(first.holds(), false);
  const second = await takeLease(disk, RUN_FOLDER, taker());
  assert.deepEqual([first.holds(), second.holds()], [false, true]);
});

Deno.test("a lease whose holder can't be written down isn't kept", async () => {
  const disk = await diskWithRun();
  disk.plan = { fail: { at: 3, fault: "full", only: "overwrite" } };
  await assert.rejects(takeLease(disk, RUN_FOLDER, taker()), { code: "RESOURCE_EXHAUSTED" });
  assert.equal(await probeLease(disk, RUN_FOLDER), undefined);
});

Deno.test("a lock file that is replaced between opening and locking is tried again", async () => {
  const disk = await diskWithRun();
  const clock = new VirtualClock();
  const open = disk.open.bind(disk);
  let replaced = false;
  disk.open = async (path, options) => {
    const file = await open(path, options);
    if (!replaced) {
      replaced = true;
      await disk.remove(LOCK);
    }
    return file;
  };
  const lease = await clock.run(takeLease(disk, RUN_FOLDER, taker(clock)));
  assert.equal(lease.holds(), true);
  assert.notEqual(await disk.stat(LOCK), undefined);
});

Deno.test("who holds a lease is found out without the right to write", async () => {
  const disk = await diskWithRun();
  await takeLease(disk, RUN_FOLDER, taker(new VirtualClock(), 77));
  disk.isReadOnly = true;
  assert.equal((await probeLease(disk, RUN_FOLDER))?.osPid, 77);
});
