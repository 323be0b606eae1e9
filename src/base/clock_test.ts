/** What only the system's clock can show: which timers keep a process alive. */
import assert from "node:assert/strict";

/** What a process says that does nothing but wait for a timer. */
async function saidOf(idle: boolean): Promise<string> {
  const clock = JSON.stringify(new URL("./clock.ts", import.meta.url).href);
  const script = `import { systemClock } from ${clock};
    systemClock.after(300, () => console.log("fired"), { idle: ${idle} });`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", "--no-lock", script],
    stdin: "null",
    stderr: "inherit",
  }).output();
  return new TextDecoder().decode(stdout);
}

Deno.test("an idle timer doesn't keep the process from ending, another one does", async () => {
  assert.deepEqual(await Promise.all([true, false].map(saidOf)), ["", "fired\n"]);
});
