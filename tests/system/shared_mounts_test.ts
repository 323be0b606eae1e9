/** Processes of a tree on one real server: started once, ended after the last of them, with each one's own rules. */
import assert from "node:assert/strict";
import type { LogLine } from "../../src/base/operations.ts";
import { processesNaming } from "../servers/marked_processes.ts";
import { ledgerMount, type ModelHome, withModelHome } from "./model_home.ts";
import {
  ask,
  begin,
  beside,
  eventually,
  lead,
  pay,
  payments,
  processes,
  put,
  resume,
} from "./tree_stage.ts";

const SLOW = [{ calls: [{ tool: "slow", input: { ms: 600_000 } }] }, { text: "Never." }];

const servers = (home: ModelHome) => processesNaming(`${home.folder}/ledger`);

/** A mount of the ledger server whose starts can be counted, with more keys. */
function mount(home: ModelHome, more = ""): string {
  return ledgerMount(home.folder).replace(
    "      startup_timeout: 1m",
    `      startup_timeout: 1m${more}`,
  );
}

async function logOf(home: ModelHome, mount: string): Promise<LogLine[]> {
  return await Array.fromAsync(home.system.mountLogs(mount));
}

const children = (names: readonly string[]) =>
  `[${names.map((name) => `{ name: ${name}, manifest: ../${name} }`).join(", ")}]`;

Deno.test("[A4] a parent that is killed while three children run on one server ends them all, the server once, after the last", async () => {
  await withModelHome({}, async (home) => {
    put(home, "payer", SLOW, mount(home));
    put(
      home,
      "lead",
      [{ calls: [ask("payer"), ask("payer"), ask("payer")] }, { text: "x" }],
      mount(home) + lead(beside("payer")),
    );
    const { handle, until } = await begin(home, "./lead");
    await until("child.spawned", 3);
    await eventually(async () => {
      const rows = await home.system.mounts();
      return rows.filter(({ status }) => status === "connected").length === 4;
    });
    assert.equal((await servers(home)).length, 1);
    handle.kill("TERM");
    const report = await handle.done;
    assert.equal(report.exit_code, 143);
    assert.deepEqual(
      (await processes(home)).map(({ state, signal }) => [state, signal]),
      [1, 2, 3, 4].map(() => ["dead", "TERM"]),
    );
    await eventually(async () => (await servers(home)).length === 0);
  });
});

Deno.test("[A4] a detached child keeps the server that its killed parent started, and ends it", async () => {
  await withModelHome({}, async (home) => {
    const gate = `${home.folder}/gate`;
    const watch = [{ calls: [{ tool: "wait", input: { path: gate } }] }, {
      calls: [pay("late")],
    }, { text: "Watched." }];
    put(home, "watcher", watch, mount(home));
    put(
      home,
      "lead",
      [{ calls: [ask("watcher")] }, { calls: [{ tool: "slow", input: { ms: 600_000 } }] }],
      mount(home) + lead("[{ name: watcher, manifest: ../watcher, detach: true }]"),
    );
    const { handle, until } = await begin(home, "./lead");
    await until("call.started", 2);
    const [pid] = await servers(home);
    handle.kill("TERM");
    await handle.done;
    assert.deepEqual(await servers(home), [pid]);
    const watcher = (await processes(home)).find(({ agent }) => agent === "watcher");
    const joined = await home.system.attach(watcher?.run_id ?? "", "now", { onEvent: () => {} });
    Deno.writeTextFileSync(gate, "");
    assert.equal((await joined.done).result, "Watched.");
    assert.deepEqual(payments(home), ["late"]);
    await eventually(async () => (await servers(home)).length === 0);
  });
});

Deno.test("[C27] children on one server have each their own tools, checked when they call", async () => {
  await withModelHome({}, async (home) => {
    const narrow = mount(home).replace("tools: {", "tools: { allow: [peek],");
    put(home, "reader", [{ calls: [{ ...pay("no"), offered: false }] }, { text: "Read." }], narrow);
    put(home, "payer", [{ calls: [pay("yes")] }, { text: "Paid." }], mount(home));
    put(
      home,
      "lead",
      [{ calls: [ask("reader"), ask("payer")] }, { text: "Done." }],
      mount(home) + lead(children(["reader", "payer"])),
    );
    const { handle } = await begin(home, "./lead");
    assert.equal((await handle.done).exit_code, 0);
    assert.deepEqual(payments(home), ["yes"]);
    assert.match(home.left(), /There is no tool named/);
  });
});

Deno.test("share: false is a server of its own", async () => {
  await withModelHome({}, async (home) => {
    put(home, "payer", SLOW, mount(home, "\n      share: false"));
    put(
      home,
      "lead",
      [{ calls: [ask("payer"), ask("payer")] }, { text: "x" }],
      mount(home) + lead(beside("payer")),
    );
    const { handle, until } = await begin(home, "./lead");
    await until("child.spawned", 2);
    await eventually(async () => (await servers(home)).length === 3);
    handle.kill("TERM");
    await handle.done;
    await eventually(async () => (await servers(home)).length === 0);
  });
});

Deno.test("a required server that fails rolls back its own process alone", async () => {
  await withModelHome({}, async (home) => {
    const broken = `${mount(home)}    gone: { command: no-such-program }\n`;
    put(home, "broken", [{ text: "x" }], broken);
    put(home, "payer", [{ calls: [pay("a")] }, { text: "Paid." }], mount(home));
    put(
      home,
      "lead",
      [{ calls: [ask("broken"), ask("payer")] }, { calls: [pay("b")] }, { text: "Done." }],
      mount(home) + lead(children(["broken", "payer"])),
    );
    const { handle } = await begin(home, "./lead");
    const report = await handle.done;
    assert.equal(report.exit_code, 0);
    assert.equal(report.failed_calls, 1);
    assert.deepEqual(payments(home), ["a", "b"]);
  });
});

Deno.test("every holder's log is the server's, in every incarnation", async () => {
  await withModelHome({}, async (home) => {
    const talking = mount(home)
      .replace(/command: .*/, "command: sh")
      .replace(/args: \[(.*)\]/, (_, args: string) => {
        const words = args.split(",").map((word) => JSON.parse(word)).join(" ");
        return `args: ["-c", "echo up >&2; exec ${Deno.execPath()} ${words}"]`;
      });
    const steps = [{ calls: [pay("a")] }, { calls: [pay("b")] }, { text: "Paid." }];
    put(home, "payer", steps, `${talking}budget: { turns: 1 }\n`);
    put(
      home,
      "lead",
      [{ calls: [ask("payer")] }, { text: "Done." }],
      talking + lead(beside("payer")),
    );
    const { handle } = await begin(home, "./lead");
    assert.equal((await handle.done).reason, "limit");
    const texts = async (pid: number) =>
      (await logOf(home, `${pid}-world`)).map(({ text }) => text);
    assert.deepEqual(await texts(2), ["up"]);
    await resume(home, "2", { budget: { turns: 20 } });
    const last = await resume(home, handle.runId);
    assert.equal(last.result, "Done.");
    for (const { pid, agent } of await processes(home)) {
      const lines = await texts(pid);
      assert.ok(lines.length >= 2, `${agent}: ${lines}`);
      assert.deepEqual([...new Set(lines)], ["up"]);
    }
  });
});
