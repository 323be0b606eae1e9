import assert from "node:assert/strict";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import { settle } from "../../../tests/doubles/virtual_clock.ts";
import type { LogLine } from "../../base/operations.ts";

const RUN = "0198c0de-0000-7000-8000-000000000001";
const LINES: LogLine[] = [
  { server: "files", run_id: RUN, source: "stderr", text: "\u001b[31mStarting\u009b0m \u202e!" },
  { server: "files", run_id: RUN, source: "stdout", text: "not JSON" },
  { server: "files", run_id: RUN, source: "rnix", text: "It was not mounted: [DRIVER] Gone" },
];

function worldWith(options?: ConstructorParameters<typeof FakeWorld>[0]): FakeWorld {
  const world = new FakeWorld(options);
  world.system.lines = LINES;
  return world;
}

Deno.test("lines say who wrote them: the server's stderr, its stdout, rnix", async () => {
  const world = worldWith();
  assert.equal(await world.run("mcp", "logs", "3-files"), 0);
  assert.equal(
    world.out.text,
    "[stderr] \u001b[31mStarting\u009b0m \u202e!\n[stdout] not JSON\n[rnix] It was not mounted: [DRIVER] Gone\n",
  );
});

Deno.test("a terminal gets nothing that it would obey, as text and as JSON", async () => {
  const world = worldWith({ terminal: true });
  await world.run("mcp", "logs", "3-files");
  assert.match(world.out.text, /^\[stderr\] \\x1b\[31mStarting\\x9b0m \\u202e!\n/);
  for (const more of [[], ["-f"]]) {
    const json = worldWith({ terminal: true });
    await json.run("mcp", "logs", "3-files", "--json", ...more);
    // deno-lint-ignore no-control-regex
    assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/.test(json.out.text));
  }
});

Deno.test("--json is one envelope, with -f one object a line, each the same as it was", async () => {
  const world = worldWith();
  await world.run("mcp", "logs", "3-files", "--json");
  assert.deepEqual(JSON.parse(world.out.text), { ok: true, data: { lines: LINES } });
  const live = worldWith();
  assert.equal(await live.run("mcp", "logs", "3-files", "-f", "--json"), 0);
  assert.deepEqual(live.out.text.trimEnd().split("\n").map((line) => JSON.parse(line)), LINES);
  assert.equal(live.err.text, "");
});

Deno.test("-f follows and -n gives the last lines; what is no number is a usage error", async () => {
  const asked = async (...args: string[]) => {
    const world = worldWith();
    assert.equal(await world.run("mcp", "logs", "3-files", ...args), 0);
    return world.system.logReadings;
  };
  assert.deepEqual(await asked(), [{ follow: false, lines: undefined }]);
  assert.deepEqual(await asked("-f", "-n", "5"), [{ follow: true, lines: 5 }]);
  assert.deepEqual(await asked("--tail=0", "--json"), [{ lines: 0 }]);
  const wrong = worldWith();
  assert.equal(await wrong.run("mcp", "logs", "3-files", "-n", "many"), 2);
  assert.match(wrong.err.text, /"--tail" must be a whole number/);
});

Deno.test("Ctrl-C ends the following and leaves the run alone, exit 130", async () => {
  const world = worldWith();
  world.system.logsGoOn = true;
  const code = world.run("mcp", "logs", "3-files", "-f");
  while (!world.out.text.includes("[rnix]")) await settle();
  world.signal("SIGINT");
  assert.equal(await code, 130);
  assert.match(world.err.text, /the run goes on[^]*rnix attach 3/);
});
