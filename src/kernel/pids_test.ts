import assert from "node:assert/strict";
import { FaultyDisk, KEPT, LOST, seeded } from "../../tests/doubles/faulty_disk.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { taker } from "../../tests/doubles/sample_entries.ts";
import type { EntryBody } from "../journal/entry.ts";
import { createJournal } from "../journal/mod.ts";
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

Deno.test("hundreds who ask at once, on a slow disk, wait for two turns of the lock", async () => {
  const disk = await freshDisk();
  const before = disk.operations.length;
  const pids = new Pids(disk, new VirtualClock(), "/state");
  const asked = Array.from({ length: 300 }, (_, index) => pids.allocate(`run-${index}`));
  const given = await Promise.all(asked);
  assert.deepEqual(given, Array.from({ length: 300 }, (_, index) => index + 1));
  assert.equal(await pids.runOf(300), "run-299");
  const made = disk.operations.slice(before);
  assert.equal(made.filter((operation) => JSON.stringify(operation).includes('"sync')).length, 4);
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

/** A state folder with three runs that had the pids 1 and 4, 2, and 3. */
async function diskWithRuns(): Promise<{ disk: FaultyDisk; runs: string[] }> {
  const disk = await freshDisk();
  const pids = new Pids(disk, new VirtualClock(), "/state");
  const runs = ["a", "b", "c"].map((end) => `01990000-0000-7000-8000-00000000000${end}`);
  for (const [position, run] of [...runs, runs[0] ?? ""].entries()) {
    assert.equal(await pids.allocate(run), position + 1);
  }
  for (const [position, run] of runs.entries()) {
    const journal = await createJournal(disk, `/state/runs/${run}`, taker());
    const shared = {
      pid: position + 1,
      spec: { sha256: "0".repeat(64), bytes: 1 },
      model: "m",
      budget: {},
      rnix_version: "0",
    };
    const bodies: EntryBody[] = [{
      type: "run.started",
      run_id: run,
      program: "agent",
      agent: "a",
      intent: "i",
      cwd: "/",
      ...shared,
    }];
    if (position === 0) {
      bodies.push({ type: "signal", signal: "TERM", origin: "user" });
      bodies.push({ type: "run.resumed", active_ms: 0, ...shared, pid: 4 });
    }
    for (const body of bodies) journal.append(body);
    await journal.barrier();
    await journal.close();
  }
  return { disk, runs };
}

const DAMAGE: { [what: string]: (bytes: Uint8Array) => Uint8Array } = {
  garbage: () => new TextEncoder().encode("no pids\nat all\n"),
  "garbage in the middle": (bytes) => {
    bytes.fill(0, 20, bytes.indexOf(10) + 30);
    return bytes;
  },
  "nothing left": () => new Uint8Array(),
  "a lost end": (bytes) => bytes.slice(0, bytes.indexOf(10) + 1),
  "pids that fall": () => new TextEncoder().encode('{"pid":9,"run":"x"}\n{"pid":1,"run":"y"}\n'),
};

Deno.test("a damaged list of pids is made anew from the journals: none is given twice, none is forgotten", async () => {
  for (const [what, damage] of Object.entries(DAMAGE)) {
    const { disk, runs } = await diskWithRuns();
    disk.damage(FILE, damage);
    const found = disk.peek(FILE);
    const pids = new Pids(disk, new VirtualClock(), "/state");
    const told: string[] = [];
    const tell = (message: string) => void told.push(message);
    const next = await pids.allocate("new", tell);
    assert.equal(next, what === "pids that fall" ? 10 : 5, what);
    assert.equal(await pids.allocate("newer", tell), next + 1);
    assert.equal(told.length, 1, what);
    for (const [pid, run] of [[1, 0], [2, 1], [3, 2], [4, 0]] as const) {
      assert.equal(await pids.runOf(pid), runs[run], `${what}, pid ${pid}`);
    }
    if (found.length > 0) {
      assert.match(told[0] ?? "", /damaged.*pids\.jsonl\.damaged-0/);
      assert.deepEqual(disk.peek(`${FILE}.damaged-0`), found, what);
    }
  }
});

Deno.test("a list of pids that is gone while there are runs is made anew", async () => {
  const { disk, runs } = await diskWithRuns();
  await disk.remove(FILE);
  const told: string[] = [];
  const pids = new Pids(disk, new VirtualClock(), "/state");
  assert.equal(await pids.allocate("new", (message) => void told.push(message)), 5);
  assert.match(told.join("\n"), /^The list of pids was gone; it was made anew/);
  assert.equal(await pids.runOf(4), runs[0]);
});

Deno.test("looking up pids in a damaged list finds them in the journals, and writes nothing", async () => {
  for (const [what, damage] of Object.entries(DAMAGE)) {
    if (what === "a lost end") continue;
    const { disk, runs } = await diskWithRuns();
    disk.damage(FILE, damage);
    disk.isReadOnly = true;
    const operations = disk.operations.length;
    const pids = new Pids(disk, new VirtualClock(), "/state");
    assert.equal(await pids.runOf(4), runs[0], what);
    assert.equal((await pids.newest()).get(runs[1] ?? ""), 2);
    assert.equal(disk.operations.length, operations);
  }
});

Deno.test("pids are found past a damaged record of a journal", async () => {
  const { disk, runs } = await diskWithRuns();
  const journal = `/state/runs/${runs[0]}/journal.jsonl`;
  disk.flipBit(journal, disk.peek(journal).indexOf(10) + 30);
  await disk.remove(FILE);
  assert.equal(await new Pids(disk, new VirtualClock(), "/state").allocate("new"), 5);
});

Deno.test("a crash while the list is made anew leaves the old one or the new one", async () => {
  for (let at = 1; at < 12; at += 1) {
    for (const choice of [LOST, KEPT, seeded(at)]) {
      const { disk, runs } = await diskWithRuns();
      for (const folder of ["/state", "/state/runs"]) await disk.syncFolder(folder);
      disk.damage(FILE, () => new TextEncoder().encode("garbage\n"));
      disk.plan = { stop: { at: disk.operations.length + at, when: "after" } };
      const given = new Pids(disk, new VirtualClock(), "/state").allocate("new");
      const pid = await Promise.race([given, disk.whenStopped.then(() => 0)]);
      const later = new Pids(disk.crash(choice), new VirtualClock(), "/state");
      assert.ok(await later.allocate("later") > Math.max(pid, 4), `stopped at ${at}`);
      assert.equal(await later.runOf(4), runs[0]);
    }
  }
});
