import assert from "node:assert/strict";
import { FakeServer, SERVER_FACTS } from "../../../tests/doubles/fake_server.ts";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld, type WorldOptions } from "../../../tests/doubles/fake_world.ts";
import { SysError } from "../../base/errors.ts";

function worldWith(server: FakeServer, options: WorldOptions = {}): FakeWorld {
  const system = new FakeSystem();
  system.server = server.connect;
  return new FakeWorld({ ...options, system });
}

const listed = (name: string, count: number) => () => ({
  outcome: "ok" as const,
  result: { [name]: Array.from({ length: count }, (_, index) => ({ name: String(index) })) },
});

Deno.test("every step is told with its time and what was found", async () => {
  const server = new FakeServer({
    "tools/list": listed("tools", 2),
    "resources/list": listed("resources", 1),
  });
  const world = worldWith(server);
  assert.equal(await world.run("mcp", "test", "files"), 0);
  assert.equal(
    world.out.text,
    `ok       connect    120ms  files 1.2.0, MCP 2025-11-25, stdio
ok       tools        0ms  2 tools
ok       resources    0ms  1 resource
skipped  prompts        -  the server has none
`,
  );
  assert.equal(server.closed, 1);
  const onTerminal = worldWith(server, { terminal: true });
  await onTerminal.run("mcp", "test", "files");
  assert.match(onTerminal.out.text, /^✓ {2}connect/);
  assert.match(onTerminal.out.text, /\n- {2}prompts/);
});

Deno.test("[D19] 0 all is well, 1 a step failed, 2 no such server", async () => {
  const failing = new FakeServer({
    "tools/list": () => ({
      outcome: "error",
      error: { code: "TIMEOUT", message: "No answer within 2s (timeout)" },
    }),
  });
  const world = worldWith(failing);
  assert.equal(await world.run("--json", "mcp", "test", "files"), 1);
  const { ok, data, error } = JSON.parse(world.out.text);
  assert.equal(ok, false);
  assert.equal(error.code, "TIMEOUT");
  assert.deepEqual(data.server, SERVER_FACTS);
  assert.deepEqual(
    data.steps.map(({ step, state }: { step: string; state: string }) => [step, state]),
    [
      ["connect", "ok"],
      ["tools", "failed"],
      ["resources", "ok"],
      ["prompts", "skipped"],
    ],
  );
  const system = new FakeSystem();
  const failure = (exitCode: number) =>
    new SysError("DRIVER", "It exited; last lines of its stderr:\n  oh no", { exitCode });
  system.failure = failure(3);
  const down = new FakeWorld({ system });
  assert.equal(await down.run("mcp", "test", "files"), 1);
  assert.equal(down.out.text, "failed  connect  0ms  It exited\n");
  assert.match(down.err.text, /^\[DRIVER\] It exited; last lines of its stderr:\n {2}oh no\n$/);
  system.failure = failure(2);
  const unknown = new FakeWorld({ system });
  assert.equal(await unknown.run("mcp", "test", "files"), 2);
  assert.equal(unknown.out.text, "");
});
