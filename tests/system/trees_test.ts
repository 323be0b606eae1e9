/** Trees of agents as a whole: decisions that reach down, stops, signals and removals that keep them together. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { RunHandle, TraceRow, UnknownCall } from "../../src/base/operations.ts";
import { planText } from "../../src/cli/commands/resume.ts";
import { shortRunId } from "../../src/base/ids.ts";
import { createSystem } from "../../src/daemon/mod.ts";
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
  resumeOf,
} from "./tree_stage.ts";

/** Three generations, of which the last one loses its server in the middle of a payment. */
function putUnknown(home: ModelHome, more = ""): void {
  const die = [{ calls: [{ tool: "die", input: { note: "once" } }] }, { text: "Went on." }];
  put(home, "payer", die, ledgerMount(home.folder) + more);
  put(home, "middle", [{ calls: [ask("payer")] }, { text: "Asked." }], lead(beside("payer")));
  put(home, "root", [{ calls: [ask("middle")] }, { text: "All done." }], lead(beside("middle")));
}

/** Written by the payment that nobody knows of. */
function deaths(home: ModelHome): number {
  return Deno.readTextFileSync(`${home.folder}/ledger`).split("\n")
    .filter((line) => line.startsWith("die ")).length;
}

Deno.test("an unknown outcome two generations down: exit 5 of the root, which names it and takes the decision", async () => {
  await withModelHome({}, async (home) => {
    putUnknown(home);
    const report = await home.run("./root");
    assert.equal(report.exit_code, 5, JSON.stringify(report));
    const [payer] = (await processes(home)).filter(({ agent }) => agent === "payer");
    assert.deepEqual(report.unknown_calls?.map(({ run_id, call, tool }) => [run_id, call, tool]), [
      [payer?.run_id, "t1.1", "mcp__world__die"],
    ]);
    await assert.rejects(
      resume(home, report.run_id, {
        unknown: [{ run: payer?.run_id ?? "", call: "t9.9", decision: { how: "skip" } }],
      }),
      /fits no call/,
    );
    assert.match(
      report.error?.hint ?? "",
      new RegExp(`--unknown=${shortRunId(payer?.run_id ?? "")}/CALL`),
    );
    const plan = await home.system.planResume(resumeOf(home, report.run_id));
    assert.deepEqual([plan.exit_code, plan.next], [5, "suspend (unknown-outcome)"]);
    const [middle] = plan.children ?? [];
    const [below] = middle?.plan?.children ?? [];
    assert.deepEqual([middle?.does, below?.does, below?.run_id], [
      ...["take it up", "take it up", payer?.run_id],
    ]);
    assert.match(below?.plan?.error?.message ?? "", /t1\.1/);
    const decided = await home.system.planResume(resumeOf(home, report.run_id, {
      unknown: [{ run: payer?.run_id ?? "", call: "t1.1", decision: { how: "skip" } }],
    }));
    assert.deepEqual([decided.exit_code, decided.next], [0, "agents under way"]);
    assert.match(planText(decided), /agent: t1\.1 agent__payer .*: take it up[^]*settle: t1\.1/);
    const still = await resume(home, report.run_id);
    assert.equal(still.exit_code, 5);
    assert.equal(deaths(home), 1);
    const last = await resume(home, report.run_id, {
      unknown: [{ run: payer?.run_id ?? "", call: "t1.1", decision: { how: "skip" } }],
    });
    assert.equal(last.result, "All done.", JSON.stringify(last));
    assert.equal(deaths(home), 1);
    assert.equal((await processes(home)).length, 3);
  });
});

Deno.test("what a resume says of all unknown outcomes holds for the runs below, too", async () => {
  await withModelHome({}, async (home) => {
    putUnknown(home);
    const { run_id } = await home.run("./root");
    const last = await resume(home, run_id, { onUnknown: "skip" });
    assert.equal(last.result, "All done.", JSON.stringify(last));
    assert.equal(deaths(home), 1);
  });
});

Deno.test("who watches the root is asked what to do about a call of a run below", async () => {
  await withModelHome({}, async (home) => {
    putUnknown(home);
    const asked: UnknownCall[] = [];
    const { handle } = await begin(home, "./root", {
      decideUnknown: (call) => {
        asked.push(call);
        return Promise.resolve({ how: "skip" });
      },
    });
    assert.equal((await handle.done).result, "All done.");
    const [payer] = (await processes(home)).filter(({ agent }) => agent === "payer");
    assert.deepEqual(asked.map(({ run_id, call }) => [run_id, call]), [[payer?.run_id, "t1.1"]]);
  });
});

Deno.test("a parent that is killed while a child of it is suspended ends that, too", async () => {
  await withModelHome({}, async (home) => {
    put(
      home,
      "stuck",
      [{ calls: [pay("a")] }, { text: "x" }],
      `${ledgerMount(home.folder)}budget: { turns: 1 }\n`,
    );
    put(home, "worker", [{ text: "never", delay: "10m" }]);
    const both = "[{ name: stuck, manifest: ../stuck }, { name: worker, manifest: ../worker }]";
    put(home, "lead", [{ calls: [ask("stuck"), ask("worker")] }, { text: "x" }], lead(both));
    const { handle, until } = await begin(home, "./lead");
    await until("child.suspended");
    handle.kill("INT");
    assert.equal((await handle.done).exit_code, 130);
    assert.deepEqual(
      (await processes(home)).map(({ state, signal }) => [state, signal]),
      [1, 2, 3].map(() => ["dead", "INT"]),
    );
  });
});

Deno.test("a child can be paused, joined and ended by its pid, and its parent takes what comes of it", async () => {
  await withModelHome({}, async (home) => {
    put(home, "worker", [{ text: "Worked.", delay: "5s" }]);
    put(
      home,
      "lead",
      [{ calls: [ask("worker"), ask("worker")] }, { text: "Done." }],
      lead(beside("worker")),
    );
    const { handle, until } = await begin(home, "./lead");
    await until("child.spawned", 2);
    await home.system.signal("3", "TERM");
    await home.system.signal("2", "PAUSE");
    const report = await handle.done;
    assert.deepEqual([report.reason, report.failed_calls], ["paused", 1]);
    const [, paused, ended] = await processes(home);
    assert.deepEqual([paused?.state, ended?.state, ended?.signal], ["suspended", "dead", "TERM"]);
    const again = await home.system.resume(resumeOf(home, handle.runId), { onEvent: () => {} });
    // It has its pid a moment before it can be joined.
    let joined: RunHandle | undefined;
    await eventually(async () => {
      joined = await home.system.attach("2", "now", { onEvent: () => {} }).catch(() => undefined);
      return joined !== undefined;
    });
    assert.equal((await joined?.done)?.result, "Worked.");
    assert.ok((await processes(home)).some(({ pid }) => pid === 5));
    assert.equal((await again.done).result, "Done.");
    assert.equal((await processes(home)).length, 3);
  });
});

Deno.test("a child that a person has taken up is joined by its parent, and never made twice", async () => {
  await withModelHome({}, async (home) => {
    const steps = [{ calls: [pay("a")] }, { calls: [pay("b")] }, { text: "Paid.", delay: "2s" }];
    put(home, "payer", steps, `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    put(home, "lead", [{ calls: [ask("payer")] }, { text: "Done." }], lead(beside("payer")));
    const { run_id } = await home.run("./lead");
    const [child, parent] = await Promise.all([
      resume(home, "2", { budget: { turns: 20 } }),
      resume(home, run_id),
    ]);
    // Whoever was first: nothing is done twice, and neither is lost.
    assert.equal((await processes(home)).length, 2);
    if (child.result === "Paid.") {
      const last = parent.result === "Done." ? parent : await resume(home, run_id);
      assert.equal(last.result, "Done.");
    }
    assert.ok(payments(home).length <= 2, payments(home).join());
  });
});

Deno.test("a child whose run was removed is a known failure: nobody makes it anew", async () => {
  await withModelHome({}, async (home) => {
    const steps = [{ calls: [pay("a")] }, { text: "Paid." }];
    put(home, "payer", steps, `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    put(home, "lead", [{ calls: [ask("payer")] }, { text: "Done." }], lead(beside("payer")));
    const { run_id } = await home.run("./lead");
    const [, child] = await processes(home);
    await Deno.remove(`${home.state}/runs/${child?.run_id}`, { recursive: true });
    const last = await resume(home, run_id);
    assert.deepEqual([last.result, last.failed_calls], ["Done.", 1]);
    assert.deepEqual(payments(home), ["a"]);
    assert.match(home.left(), /which is not there any more/);
  });
});

Deno.test("a fork takes what finished children came to, and makes those that haven't finished anew", async () => {
  await withModelHome({}, async (home) => {
    put(home, "payer", [{ calls: [pay("p")] }, { text: "Paid." }], ledgerMount(home.folder));
    const steps = [{ calls: [pay("s")] }, { text: "Slow, paid." }];
    put(home, "slow", steps, `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    const both = "[{ name: payer, manifest: ../payer }, { name: slow, manifest: ../slow }]";
    put(home, "lead", [{ calls: [ask("payer"), ask("slow")] }, { text: "Done." }], lead(both));
    const { run_id, reason } = await home.run("./lead");
    assert.equal(reason, "limit");
    const fork = await resume(home, run_id, { fork: true, yes: true });
    assert.equal(fork.reason, "limit");
    assert.deepEqual(payments(home).sort(), ["p", "s", "s"]);
    const rows = await processes(home);
    assert.deepEqual(rows.map(({ agent }) => agent).sort(), [
      "lead",
      "lead",
      "payer",
      "slow",
      "slow",
    ]);
  });
});

Deno.test("a deep tree is suspended within the one deadline, and goes on where it was", async () => {
  await withModelHome({}, async (home) => {
    const mount = ledgerMount(home.folder);
    const gate = `${home.folder}/gate`;
    const slow = [{ calls: [{ tool: "wait", input: { path: gate } }] }, { calls: [pay("a")] }, {
      text: "Paid.",
    }];
    put(home, "leaf", slow, mount);
    for (
      const [name, child] of [["four", "leaf"], ["three", "four"], ["two", "three"], [
        "one",
        "two",
      ]] as const
    ) {
      put(
        home,
        name,
        [{ calls: [ask(child), ask(child)] }, { text: `${name} done.` }],
        mount + lead(beside(child)),
      );
    }
    const { handle } = await begin(home, "./one");
    await eventually(async () => (await processes(home)).length === 31);
    const startMs = performance.now();
    handle.suspend("detached");
    assert.equal((await handle.done).reason, "detached");
    // Each level by itself has two seconds for its calls, and there are five.
    assert.ok(performance.now() - startMs < 9_000, "within the deadline of a shutdown");
    const rows = await processes(home);
    assert.deepEqual([...new Set(rows.map(({ state, reason }) => `${state} ${reason}`))], [
      "suspended detached",
    ]);
    Deno.writeTextFileSync(gate, "");
    const last = await resume(home, handle.runId, { onUnknown: "retry" });
    assert.equal(last.result, "one done.", JSON.stringify(last));
    assert.equal(payments(home).length, 16);
    assert.equal((await processes(home)).length, 31);
  });
});

Deno.test("the trace of a tree has the calls of all in it, in their order, at work and afterwards", async () => {
  await withModelHome({}, async (home) => {
    put(home, "payer", [{ calls: [pay("p")] }, { text: "Paid." }], ledgerMount(home.folder));
    put(home, "middle", [{ calls: [ask("payer")] }, { text: "Asked." }], lead(beside("payer")));
    put(
      home,
      "root",
      [{ text: "", delay: "500ms", calls: [ask("middle"), ask("middle")] }, { text: "Done." }],
      lead(beside("middle")),
    );
    const { handle } = await begin(home, "./root");
    const traceOf = async (from: "now" | "start", withChildren = true) => {
      const rows: TraceRow[] = [];
      for await (const item of home.system.trace(handle.runId, from, undefined, withChildren)) {
        if (item.kind === "record") rows.push(item.record);
      }
      return rows;
    };
    const live = traceOf("now");
    assert.equal((await handle.done).exit_code, 0);
    const counts = (rows: TraceRow[]) => {
      const pids = rows.map(({ pid }) => pid);
      return [1, 2, 3, 4, 5].map((pid) => pids.filter((each) => each === pid).length);
    };
    const later = await traceOf("start");
    assert.deepEqual(counts(await live), counts(later));
    assert.ok(counts(later).every((count) => count > 0), JSON.stringify(counts(later)));
    assert.equal(later.filter(({ syscall }) => syscall === "Spawn").length, 4);
    assert.deepEqual(counts(await traceOf("start", false)).slice(1), [0, 0, 0, 0]);
    const spawned = later.findIndex(({ syscall, result }) => syscall === "Spawn" && result === 2);
    assert.ok(spawned >= 0 && spawned < later.findIndex(({ pid }) => pid === 2));
  });
});

Deno.test("a limit holds for a whole tree, whoever spends; it is told as that of its process, and raised there", async () => {
  await withModelHome({}, async (home) => {
    const mount = ledgerMount(home.folder);
    const steps = ["a", "b", "c", "d"].map((note) => ({ calls: [pay(note)] }));
    put(home, "payer", [...steps, { text: "Paid." }], mount);
    put(
      home,
      "middle",
      [{ calls: [ask("payer"), ask("payer")] }, { text: "Both paid." }],
      lead(beside("payer")),
    );
    put(
      home,
      "root",
      [{ calls: [ask("middle")] }, { text: "All done." }],
      `${lead(beside("middle"))}budget: { tool_calls: 6 }\n`,
    );
    const report = await home.run("./root");
    assert.equal(report.exit_code, 6, JSON.stringify(report));
    // Three of the six have started agents.
    assert.equal(payments(home).length, 3);
    assert.match(
      report.error?.message ?? "",
      /"tool_calls" of PID 1, for all below it, is used up/,
    );
    assert.match(
      report.error?.hint ?? "",
      new RegExp(`rnix resume ${shortRunId(report.run_id)} --budget tool_calls=N`),
    );
    const rows = await processes(home);
    assert.deepEqual([...new Set(rows.map(({ reason }) => reason))], ["limit"]);
    const more = await resume(home, report.run_id, { budget: { tool_calls: 7 } });
    assert.equal(more.exit_code, 6);
    assert.equal(payments(home).length, 4);
    const last = await resume(home, report.run_id, { budget: { tool_calls: 50 } });
    assert.equal(last.result, "All done.", JSON.stringify(last));
    assert.equal(payments(home).length, 8);
  });
});

Deno.test("[N10] a child agent that is found by its name in the project needs trust, before anything starts", async () => {
  await withModelHome({}, async (home) => {
    put(home, ".rnix/agents/helper", [{ text: "Helped." }]);
    put(home, "lead", [{ calls: [ask("helper")] }, { text: "Done." }], lead("[helper]"));
    home.write(
      ".rnix/agents/helper/agent.yaml",
      "name: helper\ninstructions: Do it.\nmodels: { provider: scripted, script: script.yaml }\n",
    );
    await assert.rejects(home.run("./lead"), {
      code: "UNTRUSTED",
      message: /helper\/agent\.yaml \(new\)/,
    });
    assert.deepEqual(await processes(home), []);
    assert.equal((await home.run("./lead", { trust: true })).result, "Done.");
    assert.equal((await home.run("./lead")).result, "Done.");
    home.write(
      ".rnix/agents/helper/agent.yaml",
      "name: helper\ninstructions: Do more.\nmodels: { provider: scripted, script: script.yaml }\n",
    );
    await assert.rejects(home.run("./lead"), { code: "UNTRUSTED" });
  });
});

Deno.test("[N10] what lies beside an agent that was found in the project needs trust of its own", async () => {
  await withModelHome({}, async (home) => {
    const found = (name: string, more: string, instructions: string) =>
      home.write(
        `.rnix/agents/${name}/agent.yaml`,
        `name: ${name}\ninstructions: ${instructions}\nmodels: { provider: scripted, script: script.yaml }\n${more}`,
      );
    put(home, ".rnix/agents/helper", [{ calls: [ask("below")] }, { text: "Helped." }]);
    put(home, ".rnix/agents/below", [{ text: "Below." }]);
    found("helper", lead(beside("below")), "Do it.");
    found("below", "", "Do it.");
    put(home, "lead", [{ calls: [ask("helper")] }, { text: "Done." }], lead("[helper]"));
    assert.equal((await home.run("./lead", { trust: true })).result, "Done.");
    assert.equal((await home.run("./lead")).result, "Done.");
    found("below", "", "Do more.");
    await assert.rejects(home.run("./lead"), {
      code: "UNTRUSTED",
      message: /below\/agent\.yaml \(changed\)/,
    });
  });
});

Deno.test("a parent whose child is at work in another process waits for nothing and makes no second one", async () => {
  await withModelHome({}, async (home) => {
    const gate = `${home.folder}/gate`;
    const wait = { calls: [{ tool: "wait", input: { path: gate } }] };
    const steps = [{ calls: [pay("a")] }, { calls: [pay("b")] }, wait, { text: "Paid." }];
    put(home, "payer", steps, `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    put(home, "lead", [{ calls: [ask("payer")] }, { text: "Done." }], lead(beside("payer")));
    const { run_id } = await home.run("./lead");
    const other = await createSystem({ env: home.env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
    try {
      const request = resumeOf(home, "2", { budget: { turns: 20 } });
      const child = await other.system.resume(request, { onEvent: () => {} });
      const report = await resume(home, run_id);
      assert.deepEqual([report.state, report.reason], ["suspended", "interrupted"]);
      assert.match(report.error?.message ?? "", new RegExp(`at work in process ${Deno.pid}|held`));
      Deno.writeTextFileSync(gate, "");
      assert.equal((await child.done).result, "Paid.");
    } finally {
      await other.close();
    }
    assert.equal((await resume(home, run_id)).result, "Done.");
    assert.deepEqual(payments(home), ["a", "b"]);
    assert.equal((await processes(home)).length, 2);
  });
});

Deno.test("a system that ends suspends a deep tree with all else, and another one takes it up", async () => {
  await withModelHome({}, async (home) => {
    const mount = ledgerMount(home.folder).replace("peek: read", "wait: read");
    const gate = `${home.folder}/gate`;
    const slow = [{ calls: [{ tool: "wait", input: { path: gate } }] }, { calls: [pay("a")] }];
    put(home, "leaf", [...slow, { text: "Paid." }], mount);
    for (const [name, child] of [["two", "leaf"], ["one", "two"]] as const) {
      const calls = [ask(child), ask(child)];
      put(home, name, [{ calls }, { text: `${name} done.` }], mount + lead(beside(child)));
    }
    const other = await createSystem({ env: home.env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const request = { manifest: "./one", intent: "", trust: false, client };
    const { runId } = await other.system.run(request, { onEvent: () => {} });
    await eventually(async () =>
      (await processes(home)).filter(({ agent, turns }) => agent === "leaf" && turns > 0).length ===
        4
    );
    const startMs = performance.now();
    await other.close();
    assert.ok(performance.now() - startMs < 30_000);
    Deno.writeTextFileSync(gate, "");
    const rows = await processes(home);
    assert.deepEqual([...new Set(rows.map(({ state, reason }) => `${state} ${reason}`))], [
      "suspended shutdown",
    ]);
    assert.equal((await resume(home, runId)).result, "one done.");
    assert.deepEqual(payments(home), ["a", "a", "a", "a"]);
    assert.equal((await processes(home)).length, 7);
  });
});

Deno.test("a failed run whose manifest, or that of an agent it may start, is gone is refused with the way around it", async () => {
  await withModelHome({}, async (home) => {
    put(home, "helper", [{ text: "Helped." }]);
    Deno.renameSync(`${home.folder}/helper`, `${home.folder}/.rnix/agents/helper`);
    put(home, "lead", [{ calls: [{ tool: "ecko", input: {} }] }], lead("[helper]"));
    const { run_id, exit_code } = await home.run("./lead", { trust: true });
    assert.equal(exit_code, 1);
    const refused = async (message: RegExp) => {
      await assert.rejects(resume(home, run_id), (thrown) => {
        assert.ok(thrown instanceof SysError);
        assert.match(thrown.message, message);
        assert.equal(thrown.exitCode, 2);
        assert.match(thrown.hint ?? "", /--stored goes on with the manifest as it was/);
        return true;
      });
      const { error } = await home.system.planResume(resumeOf(home, run_id));
      assert.match(error?.message ?? "", message);
      assert.match(error?.hint ?? "", /--stored/);
    };
    Deno.removeSync(`${home.folder}/.rnix/agents/helper`, { recursive: true });
    await refused(/lead\/agent\.yaml:5:10: Agent "helper", which "lead" may start: No agent "hel/);
    Deno.removeSync(`${home.folder}/lead`, { recursive: true });
    await refused(/No manifest at .*lead\/agent\.yaml/);
    assert.equal((await resume(home, run_id, { stored: true })).exit_code, 1);
  });
});
