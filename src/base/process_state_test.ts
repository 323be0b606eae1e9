import assert from "node:assert/strict";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { isStoppedProcess, killChild } from "./process_state.ts";

/** Its limit never passes here, however busy the machine is. */
const clock = new VirtualClock();

/** A signal takes a moment to be seen, on a loaded machine a long one. */
const LIMIT_MS = 60_000;

async function becomes(osPid: number, stopped: boolean): Promise<boolean> {
  const endMs = performance.now() + LIMIT_MS;
  while (performance.now() < endMs) {
    if (await isStoppedProcess(osPid, clock) === stopped) return true;
  }
  return false;
}

Deno.test("a stopped process is told from a running one and from none", async () => {
  const child = new Deno.Command("sleep", { args: ["60"], stdin: "null", stdout: "null" }).spawn();
  try {
    assert.equal(await isStoppedProcess(child.pid, clock), false);
    child.kill("SIGSTOP");
    assert.ok(await becomes(child.pid, true));
    child.kill("SIGCONT");
    assert.ok(await becomes(child.pid, false));
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
  assert.equal(await isStoppedProcess(child.pid, clock), false);
});

Deno.test("a child is killed while it lives, and left alone once it has ended", async () => {
  const lives = new Deno.Command("sleep", { args: ["600"], stdin: "null" }).spawn();
  killChild(lives);
  assert.equal((await lives.status).signal, "SIGKILL");
  killChild(lives);
});
