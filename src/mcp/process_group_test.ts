/** Ending real process groups. */
import assert from "node:assert/strict";
import { patientClock } from "../../tests/doubles/patient_clock.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { endGroup, groupAlive, signalGroup, TERM_GRACE_MS } from "./process_group.ts";

/** Far more than anything here takes on a loaded machine. */
const LIMIT_MS = 60_000;

function shell(command: string): Deno.ChildProcess {
  return new Deno.Command("/bin/sh", {
    args: ["-c", command],
    detached: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
}

/** The line that the script prints once it is set up. */
async function firstLine(child: Deno.ChildProcess): Promise<string> {
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

async function end(
  child: Deno.ChildProcess,
  clock: Clock = systemClock,
): Promise<{ status: Deno.CommandStatus; tookMs: number }> {
  await child.stdin.close();
  const began = performance.now();
  await endGroup(child, clock);
  return { status: await child.status, tookMs: performance.now() - began };
}

Deno.test("a child that ends with its stdin gets no signal", async () => {
  const child = shell("echo up; cat >/dev/null; exit 5");
  await firstLine(child);
  const { status } = await end(child);
  assert.equal(status.code, 5);
  assert.equal(await groupAlive(child.pid), false);
});

Deno.test("SIGTERM comes after the end of stdin and reaches the whole group", async () => {
  const child = shell("sleep 600 & echo up; wait");
  await firstLine(child);
  // No limit passes on this clock within the minute: it is through when the group is.
  const { status, tookMs } = await end(child, patientClock);
  assert.equal(status.signal, "SIGTERM");
  assert.ok(tookMs < LIMIT_MS, `${tookMs} ms`);
  assert.equal(await groupAlive(child.pid), false);
});

Deno.test("[C05] who ignores SIGTERM is killed after five seconds, the leader gone or not", async () => {
  const stubborn = shell("trap '' TERM; echo up; while :; do sleep 1; done");
  const left = shell("sh -c 'trap \"\" TERM; echo up; while :; do sleep 1; done' & wait");
  await Promise.all([firstLine(stubborn), firstLine(left)]);
  const ended = await Promise.all([end(stubborn), end(left)]);
  assert.deepEqual(ended.map(({ status }) => status.signal), ["SIGKILL", "SIGTERM"]);
  for (const { tookMs } of ended) assert.ok(tookMs >= TERM_GRACE_MS, `${tookMs} ms`);
  for (const child of [stubborn, left]) {
    const began = performance.now();
    while (await groupAlive(child.pid)) assert.ok(performance.now() - began < LIMIT_MS);
  }
});

/** Waits until the process has ended and nobody has reaped it, or until it is gone. */
async function ended(pid: number): Promise<void> {
  const began = performance.now();
  for (;;) {
    const stat = await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => ") X");
    if (/\) [ZX]/.test(stat)) return;
    assert.ok(performance.now() - began < LIMIT_MS, stat);
    await new Promise((done) => setTimeout(done, 5));
  }
}

Deno.test("a group of zombies counts as gone; a group that never was, too", async () => {
  const child = shell("sleep 0 & echo $!; exec sleep 600");
  const zombie = Number(await firstLine(child));
  await ended(zombie);
  child.kill("SIGKILL");
  await child.status;
  await child.stdin.close().catch(() => {});
  assert.equal(await groupAlive(child.pid), false);
  assert.equal(signalGroup(2 ** 22 - 1, "SIGTERM"), false);
  assert.equal(await groupAlive(2 ** 22 - 1), false);
});
