/** The guard against real processes: whatever an instance started is gone after its end. */
import assert from "node:assert/strict";
import { patientClock as clock } from "../../tests/doubles/patient_clock.ts";
import { startGuard, sweep } from "./guard.ts";

const decoder = new TextDecoder();

/** OS pids whose environment holds `text`, zombies aside. */
async function marked(text: string): Promise<number[]> {
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", `grep -lsF "$0" /proc/[0-9]*/environ; true`, text],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin" },
  }).output();
  return decoder.decode(stdout).split("\n").filter((line) => line !== "")
    .map((line) => Number(line.split("/")[2]));
}

/** Far more than anything here takes on a loaded machine. */
const LIMIT_MS = 60_000;

async function until(check: () => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + LIMIT_MS;
  while (performance.now() < end) {
    if (await check()) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return await check();
}

function shell(command: string, env: Record<string, string>): Deno.ChildProcess {
  return new Deno.Command("/bin/sh", {
    args: ["-c", command],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", ...env },
    detached: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

const newInstance = () => `test-${crypto.randomUUID()}`;

Deno.test("a closing guard kills marked processes, setsid grandchildren and stubborn ones", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  const child = shell(
    `trap '' TERM HUP INT; setsid sh -c 'trap "" TERM; sleep 600; sleep 600' & sleep 600 & wait`,
    guard.mark,
  );
  const mark = `RNIX_INSTANCE=${guard.instance}`;
  assert.ok(await until(async () => (await marked(mark)).length >= 3));
  await guard.close();
  assert.deepEqual(await marked(mark), []);
  await child.status;
});

Deno.test("a guard leaves the processes of another instance alone", async () => {
  const mine = await startGuard({ instance: newInstance(), clock });
  const other = await startGuard({ instance: newInstance(), clock });
  const child = shell("exec sleep 600", other.mark);
  // The shell becomes another program, between which its environment can't be read.
  assert.ok(await until(async () => (await marked(other.instance)).length === 1));
  await mine.close();
  assert.deepEqual(await marked(`RNIX_INSTANCE=${other.instance}`), [child.pid]);
  await other.close();
  await child.status;
});

Deno.test("a named process group is killed though it carries no mark, one that ended is not", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  const named = shell("exec sleep 600", {});
  const ended = shell("exec sleep 600", {});
  guard.groupStarted(named.pid);
  guard.groupStarted(ended.pid);
  guard.groupEnded(ended.pid);
  await guard.close();
  assert.equal((await named.status).signal, "SIGKILL");
  ended.kill("SIGTERM");
  assert.equal((await ended.status).signal, "SIGTERM");
});

Deno.test("closing a guard twice, and telling it groups afterwards, is harmless", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  await Promise.all([guard.close(), guard.close()]);
  guard.groupStarted(1);
  await guard.close();
});

Deno.test("the guard survives HUP, INT and TERM and still does its work", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  const child = shell("exec sleep 600", guard.mark);
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) Deno.kill(guard.pid, signal);
  await guard.close();
  assert.equal((await child.status).signal, "SIGKILL");
});

Deno.test("an instance id that could match other processes is refused", async () => {
  for (const instance of ["", "short", "has space in it", "a".repeat(65), "dots.are.no.good"]) {
    await assert.rejects(() => startGuard({ instance }), { code: "INVALID" });
  }
});

Deno.test("the guard itself carries no mark", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  assert.deepEqual(await marked(`RNIX_INSTANCE=${guard.instance}`), []);
  await guard.close();
});

Deno.test("a guard that was killed is replaced, and the new one does its work", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  const first = guard.pid;
  Deno.kill(first, "SIGKILL");
  assert.ok(await until(() => Promise.resolve(guard.pid !== first)));
  const child = shell("exec sleep 600", guard.mark);
  await guard.close();
  assert.deepEqual(await marked(`RNIX_INSTANCE=${guard.instance}`), []);
  await child.status;
});

Deno.test("a guard that is killed again and again is replaced each time before long", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  for (let kills = 0; kills < 8; kills += 1) {
    const { pid } = guard;
    Deno.kill(pid, "SIGKILL");
    assert.ok(await until(() => Promise.resolve(guard.pid !== pid)), `kill ${kills}`);
  }
  await guard.close();
});

Deno.test("what a killed guard would have swept is swept at the end", async () => {
  const guard = await startGuard({ instance: newInstance(), clock });
  const child = shell("exec sleep 600", guard.mark);
  Deno.kill(guard.pid, "SIGKILL");
  await guard.close();
  assert.deepEqual(await marked(`RNIX_INSTANCE=${guard.instance}`), []);
  await child.status;
});

Deno.test("a sweep ends what an instance left behind, and nothing else", async () => {
  const gone = newInstance();
  const other = newInstance();
  const left = shell("exec sleep 600", { RNIX_INSTANCE: gone });
  const stays = shell("exec sleep 600", { RNIX_INSTANCE: other });
  assert.ok(await until(async () => (await marked(gone)).length === 1));
  await sweep(gone, clock);
  assert.deepEqual(await marked(gone), []);
  assert.ok(await until(async () => (await marked(other)).length === 1));
  stays.kill("SIGKILL");
  await Promise.all([left.status, stays.status]);
});
