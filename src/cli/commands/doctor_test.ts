import assert from "node:assert/strict";
import { FakeSystem, row } from "../../../tests/doubles/fake_system.ts";
import { onMachine, SCRIPT } from "../../../tests/doubles/made_up_machine.ts";

Deno.test("a machine that is fit has a line for each thing that was looked at", async () => {
  await onMachine({ "bin/npx": SCRIPT, "bin/node": SCRIPT }, async (machine) => {
    machine.system = new FakeSystem();
    machine.system.rows = [row({ state: "running" })];
    const { code, stdout, stderr } = await machine.rnix(["doctor"]);
    assert.equal(code, 0, stdout);
    const lines = stdout.trim().split("\n");
    assert.deepEqual(lines.map((line) => /^(.) ([^:]+):/.exec(line)?.slice(1)), [
      ...["rnix", "state", "configuration", "socket", "daemon"].map((what) => ["✓", what]),
      ...["orphan guard", "programs", "runs"].map((what) => ["✓", what]),
    ]);
    assert.match(stdout, /✓ state: ~\/\.local\/state\/rnix \(made with the first run\)/);
    assert.match(stdout, /✓ programs: \/bin\/node, \/bin\/npx; not found: python3/);
    assert.match(stdout, /✓ runs: 1 at work, 0 suspended/);
    assert.equal(stderr, "");
  });
});

Deno.test("state that others can read, and runs that wait for a decision, are warnings", async () => {
  await onMachine({ "home/.local/state/rnix/x": "", "bin/npx": SCRIPT }, async (machine) => {
    Deno.chmodSync(`${machine.folder}/home/.local/state/rnix`, 0o755);
    machine.system = new FakeSystem();
    machine.system.rows = [row({ state: "suspended", reason: "unknown-outcome" })];
    const { code, stdout, stderr } = await machine.rnix(["doctor"]);
    assert.equal(code, 0);
    assert.match(stdout, /! state: .* a durable write takes [\d.]+ ms; others can look into it/);
    assert.match(stdout, /! runs: 0 at work, 1 suspended \(1 with calls of unknown outcome\)/);
    assert.match(stderr, /hint: state: chmod 700/);
    assert.deepEqual([...Deno.readDirSync(`${machine.folder}/home/.local/state/rnix`)].length, 1);
  });
});

Deno.test("what makes runs fail is a fault, exit 1, and the same as JSON", async () => {
  const files = { "home/.config/rnix/config.yaml": "gc: { retention: soon }\n" };
  await onMachine(files, async (machine) => {
    machine.system = new FakeSystem();
    const { code, stdout } = await machine.rnix(["doctor", "--json"]);
    assert.equal(code, 1);
    const { ok, data, error } = JSON.parse(stdout);
    assert.equal(ok, false);
    assert.equal(error.message, "1 fault found");
    const faults = data.findings.filter(({ state }: { state: string }) => state === "fault");
    assert.match(faults[0].message, /config\.yaml:1:\d+: /);
    const { message } = data.findings.find(({ what }: { what: string }) => what === "programs");
    assert.match(message, /^none of the usual ones; not found: node, npx/);
  });
});
