import assert from "node:assert/strict";
import { systemClock } from "./clock.ts";
import { isStoppedProcess } from "./process_state.ts";

Deno.test("a stopped process is told from a running one and from none", async () => {
  const child = new Deno.Command("sleep", { args: ["60"], stdin: "null", stdout: "null" }).spawn();
  try {
    assert.equal(await isStoppedProcess(child.pid, systemClock), false);
    child.kill("SIGSTOP");
    assert.equal(await isStoppedProcess(child.pid, systemClock), true);
    child.kill("SIGCONT");
    assert.equal(await isStoppedProcess(child.pid, systemClock), false);
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
  assert.equal(await isStoppedProcess(child.pid, systemClock), false);
});
