import assert from "node:assert/strict";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import type { MountRow } from "../../base/operations.ts";

const MOUNT: MountRow = {
  mount: "3-files",
  pid: 3,
  agent: "reviewer",
  server: "files",
  transport: "stdio",
  status: "connected",
  tools: 14,
  protocol_version: "2025-11-25",
};

Deno.test("mcp list shows servers of runs at work and suspended ones", async () => {
  const world = new FakeWorld();
  world.system.mounted = [MOUNT, { ...MOUNT, mount: "12-git", pid: 12, status: "unmounted" }];
  assert.equal(await world.run("mcp", "list"), 0);
  assert.equal(
    world.out.text,
    `MOUNT    TRANSPORT  STATUS     TOOLS  PROTOCOL    AGENT
3-files  stdio      connected     14  2025-11-25  reviewer
12-git   stdio      unmounted     14  2025-11-25  reviewer
`,
  );
  assert.equal(world.err.text, "");
  const quiet = new FakeWorld();
  quiet.system.mounted = [MOUNT];
  await quiet.run("mcp", "list", "-q");
  assert.equal(quiet.out.text, "3-files\n");
  const json = new FakeWorld();
  json.system.mounted = [MOUNT];
  await json.run("mcp", "list", "--json");
  assert.deepEqual(JSON.parse(json.out.text), { ok: true, data: { mounts: [MOUNT] } });
});

Deno.test("how a mount fares that isn't connected, and why, is told below", async () => {
  const world = new FakeWorld();
  const since_ms = world.clock.now() - 12_000;
  const lost = { since_ms, attempts: 2, last_error: "Server closed its output\u001b[2J" };
  world.system.mounted = [
    { ...MOUNT, since_ms, attempts: 0 },
    { ...MOUNT, mount: "3-git", status: "waiting", ...lost },
  ];
  assert.equal(await world.run("mcp", "list"), 0);
  assert.match(world.out.text, /3-git {4}stdio {6}waiting /);
  assert.match(world.err.text, /^3-git: waiting for 12\.?0?s: Server closed its output/);
  assert.ok(!world.err.text.includes("\u001b"));
});

Deno.test("without any it says so and exits 0", async () => {
  const world = new FakeWorld();
  assert.equal(await world.run("mcp", "list"), 0);
  assert.equal(world.out.text, "No MCP servers are mounted.\n");
});
