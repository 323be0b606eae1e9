/** Agents that start agents, in whole runs: processes of their own, in one tree with their parent. */
import assert from "node:assert/strict";
import { disk } from "../../src/base/disk.ts";
import { exportRun } from "../../src/daemon/export_run.ts";
import { ledgerMount, withModelHome } from "./model_home.ts";
import { ask, beside, lead, pay, payments, processes, put, resume } from "./tree_stage.ts";

Deno.test("children run at once, each with a pid of its own, and their answers are results", async () => {
  await withModelHome({}, async (home) => {
    put(home, "payer", [{ calls: [pay("x")] }, { text: "Paid." }], ledgerMount(home.folder));
    put(
      home,
      "lead",
      [{ calls: [ask("payer"), ask("payer", "Pay again")] }, { text: "All done." }],
      lead(beside("payer")),
    );
    const report = await home.run("./lead");
    assert.equal(report.exit_code, 0, JSON.stringify(report.error));
    assert.equal(report.result, "All done.");
    assert.deepEqual(payments(home), ["x", "x"]);
    const rows = await processes(home);
    assert.deepEqual(rows.map(({ pid, ppid, agent }) => [pid, ppid, agent]), [
      [1, 0, "lead"],
      [2, 1, "payer"],
      [3, 1, "payer"],
    ]);
    assert.deepEqual(rows.slice(1).map(({ intent }) => intent).sort(), ["Pay again", "Pay it"]);
    const spawned = report.events.filter(({ type }) => type === "child.spawned");
    assert.equal(spawned.length, 2);
    const { differences } = await home.system.replay(report.run_id);
    assert.deepEqual(differences, []);
  });
});

Deno.test("[C27] a child has the servers of its own manifest alone", async () => {
  await withModelHome({}, async (home) => {
    put(home, "child", [{ calls: [{ ...pay("x"), offered: false }] }, { text: "Tried." }]);
    put(
      home,
      "lead",
      [{ calls: [ask("child")] }, { text: "Done." }],
      ledgerMount(home.folder) + lead(beside("child")),
    );
    assert.equal((await home.run("./lead")).exit_code, 0);
    assert.deepEqual(payments(home), []);
    assert.match(home.left(), /There is no tool named/);
  });
});

Deno.test("a child that fails is an error of its parent's call, not its parent's end", async () => {
  await withModelHome({}, async (home) => {
    put(home, "child", [{ text: "x" }], "mcp: { servers: { no: { command: no-such-program } } }\n");
    put(home, "lead", [{ calls: [ask("child")] }, { text: "Done." }], lead(beside("child")));
    const report = await home.run("./lead");
    assert.equal(report.exit_code, 0);
    assert.equal(report.failed_calls, 1);
    assert.match(home.left(), /Agent \\"child\\" failed: \[NOT_FOUND\]/);
  });
});

Deno.test("[A03] a tree that was suspended goes on where it was: what finished isn't done again", async () => {
  await withModelHome({}, async (home) => {
    const steps = [{ calls: [pay("a")] }, { calls: [pay("b")] }, { text: "Paid." }];
    put(home, "payer", steps, `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    put(
      home,
      "lead",
      [{ calls: [ask("payer")] }, { text: "All done." }],
      lead(beside("payer")),
    );
    const report = await home.run("./lead");
    assert.equal(report.reason, "limit", JSON.stringify(report));
    assert.match(
      report.error?.message ?? "",
      /Agent "payer" \(PID 2, run \w+\) is suspended \(limit\)/,
    );
    const [parent, child] = await processes(home);
    assert.equal(child?.state, "suspended");
    // A child that hasn't ended counts for the tree already, the same wherever it is told.
    const used = (child?.tokens_used ?? 0) + report.tokens_used;
    assert.deepEqual([report.turns, report.tree?.turns, report.tree?.tokens_used], [1, 2, used]);
    assert.deepEqual(parent?.tree, report.tree);
    assert.equal(parent?.tokens_used, report.tokens_used);
    assert.equal(child?.tree, undefined);
    assert.deepEqual((await home.system.report("1"))?.tree, report.tree);
    const pieces = exportRun(disk, `${home.state}/runs/${report.run_id}`, "json");
    assert.deepEqual(JSON.parse((await Array.fromAsync(pieces)).join("")).run.tree, report.tree);
    assert.equal((await resume(home, "2", { budget: { turns: 20 } })).exit_code, 0);
    const last = await resume(home, report.run_id);
    assert.equal(last.result, "All done.", JSON.stringify(last.error));
    assert.deepEqual(payments(home), ["a", "b"]);
    const counted = (await processes(home)).map(({ agent, tree }) => [agent, tree]);
    assert.deepEqual(counted, [["payer", undefined], ["lead", last.tree]]);
    assert.equal(last.tree?.turns, 5);
  });
});

Deno.test("what stops a parent stops its children, and resuming it takes them up", async () => {
  await withModelHome({}, async (home) => {
    const slow = [{ calls: [{ tool: "slow", input: { ms: 60_000 } }] }, { calls: [pay("a")] }, {
      text: "Paid.",
    }];
    put(home, "payer", slow, ledgerMount(home.folder).replace("peek: read", "slow: read"));
    put(home, "lead", [{ calls: [ask("payer")] }, { text: "All done." }], lead(beside("payer")));
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const began = Promise.withResolvers<void>();
    const handle = await home.system.run(
      { manifest: "./lead", intent: "", trust: false, client },
      { onEvent: ({ type }) => type === "child.spawned" && began.resolve() },
    );
    await began.promise;
    handle.suspend("paused");
    assert.equal((await handle.done).reason, "paused");
    assert.deepEqual((await processes(home)).map(({ state, reason }) => [state, reason]), [
      ["suspended", "paused"],
      ["suspended", "paused"],
    ]);
    await home.system.signal(handle.runId, "TERM");
    assert.deepEqual((await processes(home)).map(({ state, signal }) => [state, signal]), [
      ["dead", "TERM"],
      ["dead", "TERM"],
    ]);
    assert.deepEqual(payments(home), []);
  });
});

Deno.test("a killed parent ends its tree; a detached child goes on and is nobody's", async () => {
  await withModelHome({}, async (home) => {
    const slow = [{ text: "Watched.", delay: "6s" }];
    put(home, "watcher", slow);
    put(home, "worker", [{ text: "never", delay: "10m" }]);
    const agents =
      `[{ name: watcher, manifest: ../watcher, detach: true }, { name: worker, manifest: ../worker }]`;
    put(home, "lead", [{ calls: [ask("watcher"), ask("worker")] }, { text: "x" }], lead(agents));
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const began = Promise.withResolvers<void>();
    let spawned = 0;
    const handle = await home.system.run(
      { manifest: "./lead", intent: "", trust: false, client },
      {
        onEvent: ({ type }) => {
          if (type === "child.spawned") spawned += 1;
          if (spawned === 2) began.resolve();
        },
      },
    );
    await began.promise;
    handle.kill("TERM");
    await handle.done;
    const rows = await processes(home);
    const of = (agent: string) => rows.find((row) => row.agent === agent);
    assert.equal(of("lead")?.signal, "TERM");
    assert.equal(of("worker")?.signal, "TERM");
    assert.deepEqual([of("watcher")?.state, of("watcher")?.ppid], ["running", 0]);
    const { run_id = "" } = of("watcher") ?? {};
    const watcher = await home.system.attach(run_id, "now", { onEvent: () => {} });
    assert.equal((await watcher.done).result, "Watched.");
  });
});

Deno.test("agents may start each other only so deep, and a budget holds for all below", async () => {
  await withModelHome({}, async (home) => {
    put(
      home,
      "self",
      [{ calls: [ask("self", "Again")] }, { text: "Enough." }],
      lead("[{ name: self, manifest: . }]"),
    );
    assert.equal((await home.run("./self")).exit_code, 0);
    assert.equal((await processes(home)).length, 6);
    assert.match(home.left(), /5 deep at most/);
    put(home, "child", [{ text: "A long answer. ".repeat(100) }]);
    const calls = [{ calls: [ask("child")] }, { calls: [ask("child")] }, { text: "Done." }];
    put(home, "lead", calls, `${lead(beside("child"))}budget: { tokens: 300 }\n`);
    const report = await home.run("./lead");
    assert.equal(report.reason, "limit", JSON.stringify(report));
  });
});

Deno.test("an agent that can't be found, and one named twice, are told before anything starts", async () => {
  await withModelHome({}, async (home) => {
    put(home, "lead", [{ text: "x" }], lead("[nobody]"));
    await assert.rejects(
      home.run("./lead"),
      /lead\/agent\.yaml:5:10: Agent "nobody", which "lead" may start: No agent "nobody"/,
    );
    put(home, "lead", [{ text: "x" }], lead(beside("nowhere")));
    await assert.rejects(
      home.run("./lead"),
      /lead\/agent\.yaml:5:37: No agent at "\.\.\/nowhere"/,
    );
    put(home, "lead", [{ text: "x" }], lead(beside("wrong")));
    home.write("wrong/agent.yaml", "name: wrong\ninstructons: x\n");
    await assert.rejects(
      home.run("./lead"),
      /lead\/agent\.yaml:5:35: Agent "wrong"[^]* wrong\/agent\.yaml:2:1: Unknown key "instructons"/,
    );
    put(home, "lead", [{ text: "x" }], lead("[a, a]"));
    await assert.rejects(home.run("./lead"), /Agent "a" is named twice/);
    assert.deepEqual(await processes(home), []);
  });
});

Deno.test("mistakes of a script are told where they stand, by the path that its manifest was given by", async () => {
  await withModelHome({}, async (home) => {
    put(home, "lead", [{ txt: "x" }]);
    await assert.rejects(home.run("./lead"), / lead\/script\.yaml:1:12: Unknown key "txt"/);
    const given = "../project/lead";
    await assert.rejects(home.run(given), / \.\.\/project\/lead\/script\.yaml:1:12: Unknown/);
    put(home, "lead", [{ calls: [{ tool: "ecko", input: {} }] }]);
    const report = await home.run("./lead");
    assert.match(
      report.error?.message ?? "",
      /lead\/script\.yaml:1:21: Reply 1: There is no tool "ecko"/,
    );
  });
});
