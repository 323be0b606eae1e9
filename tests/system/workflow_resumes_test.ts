/** Workflows that are taken up again: what was done stays done, whoever took up what meanwhile. */
import assert from "node:assert/strict";
import { ledgerMount, withModelHome } from "./model_home.ts";
import { eventually, payments, processes, resumeOf } from "./tree_stage.ts";
import { agent, echo, hasAnswer, resume, run, starts, workflow } from "./workflow_stage.ts";

Deno.test("[A03] a suspended node suspends the workflow; taken up, it goes on where it was, and nothing is done again", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    const pay = (note: string) => ({ calls: [{ tool: "pay", input: { note } }] });
    agent(
      home,
      "payer",
      [pay("one"), pay("two"), { text: "Paid." }],
      `${ledgerMount(home.folder)}budget: { turns: 1 }\n`,
    );
    workflow(
      home,
      `  before: { agent: ./echo, intent: x }
  pay: { agent: ./payer, intent: pay, depends_on: [before], retry: { attempts: 3 } }
  beside: { agent: ./echo, intent: beside }
  last: { agent: ./echo, intent: "\${{ nodes.pay.result }}", depends_on: [pay, beside] }
`,
    );
    const report = await run(home);
    assert.deepEqual([report.state, report.reason, report.exit_code], ["suspended", "limit", 6]);
    assert.deepEqual(starts(report), ["n.before", "n.beside", "n.pay"]);
    const child = (await home.system.processes({ all: true })).find((row) => row.agent === "payer");
    assert.equal(child?.state, "suspended");
    await resume(home, String(child?.run_id), { budget: { turns: 20 } });
    const last = await resume(home, report.run_id);
    assert.equal(last.result, "<Paid.>", JSON.stringify(last.error));
    assert.deepEqual(starts(last), ["n.pay", "n.last"]);
    assert.deepEqual(payments(home), ["one", "two"]);
  });
});

Deno.test("a failed workflow goes on with what had failed, from its manifest as it is now, parameters kept", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    agent(home, "broken", [{ text: "x" }], "mcp: { servers: { no: { command: no-such } } }\n");
    const nodes = (second: string) =>
      `  a: { agent: ./echo, intent: "\${{ params.p }}" }
  b: { agent: ./${second}, intent: "\${{ nodes.a.result }} \${{ params.p }}", depends_on: [a] }
`;
    workflow(home, nodes("broken"), "parameters: { p: }");
    const report = await run(home, { parameters: { p: "kept" } });
    assert.equal(report.exit_code, 1);
    workflow(home, nodes("echo"), "parameters: { p: }");
    const plan = await home.system.planResume({
      run: report.run_id,
      client: { cwd: home.folder, env: home.env, interactive: false },
      unknown: [],
      ...{ stored: false, acceptCut: false, fork: false, yes: false, trust: false },
    });
    assert.deepEqual([plan.next, plan.send.map(({ call }) => call)], [
      "nodes of the workflow",
      ["n.b"],
    ]);
    const last = await resume(home, report.run_id);
    assert.equal(last.result, "<<kept> kept>", JSON.stringify(last.error));
    assert.deepEqual(starts(last), ["n.b"]);
  });
});

Deno.test("a workflow that was killed in the middle of a payment goes on with the same agent: it asks, and pays nothing twice", async () => {
  await withModelHome({}, async (home) => {
    const pay = (note: string, more = {}) => ({ tool: "pay", input: { note, ...more } });
    const turns = [
      { calls: [pay("first")] },
      { calls: [pay("second", { after_ms: 60_000 })] },
      { text: "Paid." },
    ];
    agent(home, "payer", turns, ledgerMount(home.folder));
    echo(home);
    workflow(
      home,
      `  pay: { agent: ./payer, intent: Pay }
  end: { agent: ./echo, intent: "\${{ nodes.pay.result }}", depends_on: [pay] }
`,
    );
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const request = { manifest: "./flow.yaml", intent: "", trust: false, client };
    const handle = await home.system.run(request, { onEvent: () => {} });
    await eventually(() => payments(home).length === 2);
    handle.kill("TERM");
    const { run_id, exit_code } = await handle.done;
    assert.equal(exit_code, 143);
    const [, child] = await processes(home);
    const plan = await home.system.planResume(resumeOf(home, run_id));
    assert.deepEqual(plan.send.map(({ call, continues }) => [call, continues]), [
      ["n.pay", child?.run_id],
    ]);
    const asked = await resume(home, run_id);
    assert.equal(asked.exit_code, 5, JSON.stringify(asked));
    assert.deepEqual(asked.unknown_calls?.map((call) => [call.run_id, call.call]), [
      [child?.run_id, "t2.1"],
    ]);
    const rule = { run: child?.run_id ?? "", call: "t2.1", decision: { how: "done" as const } };
    const last = await resume(home, run_id, { unknown: [rule] });
    assert.equal(last.result, "<Paid.>", JSON.stringify(last));
    assert.deepEqual(payments(home), ["first", "second"]);
    assert.equal(last.tree?.turns, 4, "what the agent did before counts once");
    assert.equal((await processes(home)).length, 3);
    assert.deepEqual((await home.system.replay(run_id)).differences, []);
  });
});

Deno.test("an agent of a workflow that was killed alone goes on when the workflow does, as its manifest is now", async () => {
  await withModelHome({}, async (home) => {
    const paid = { calls: [{ tool: "pay", input: { note: "once" } }] };
    agent(home, "payer", [paid, { text: "Paid.", delay: "60s" }], ledgerMount(home.folder));
    workflow(home, "  pay: { agent: ./payer, intent: Pay }\n");
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const request = { manifest: "./flow.yaml", intent: "", trust: false, client };
    const handle = await home.system.run(request, { onEvent: () => {} });
    await eventually(() => hasAnswer(home, 2));
    const [, child] = await processes(home);
    await home.system.signal(String(child?.pid), "TERM");
    const failed = await handle.done;
    assert.match(failed.error?.message ?? "", /ended by SIGTERM/);
    agent(home, "payer", [paid, { text: "Paid at last." }], ledgerMount(home.folder));
    const last = await resume(home, failed.run_id);
    assert.equal(last.result, "Paid at last.", JSON.stringify(last));
    assert.deepEqual(payments(home), ["once"]);
    const runs = (await processes(home)).map((row) => row.run_id);
    assert.deepEqual(new Set(runs), new Set([failed.run_id, child?.run_id]));
  });
});

Deno.test("what a person has made of a killed agent meanwhile is what its node comes to", async () => {
  await withModelHome({}, async (home) => {
    const paid = { calls: [{ tool: "pay", input: { note: "once" } }] };
    agent(home, "payer", [paid, { text: "Paid.", delay: "4s" }], ledgerMount(home.folder));
    workflow(home, "  pay: { agent: ./payer, intent: Pay }\n");
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const request = { manifest: "./flow.yaml", intent: "", trust: false, client };
    const handle = await home.system.run(request, { onEvent: () => {} });
    await eventually(() => hasAnswer(home, 2));
    handle.kill("TERM");
    const { run_id } = await handle.done;
    const [, child] = await processes(home);
    const alone = await resume(home, child?.run_id ?? "");
    assert.equal(alone.result, "Paid.", JSON.stringify(alone));
    const last = await resume(home, run_id);
    assert.equal(last.result, "Paid.", JSON.stringify(last));
    assert.deepEqual(payments(home), ["once"]);
    assert.equal((await processes(home)).length, 2);
  });
});

Deno.test("an agent that failed before it had done anything is the same run as well, whoever takes it up", async () => {
  await withModelHome({}, async (home) => {
    const turns = [{ calls: [{ tool: "pay", input: { note: "${{ intent }}" } }] }, {
      text: "Paid.",
    }];
    const broken = "mcp: { servers: { ledger: { command: no-such } } }\n";
    agent(home, "payer", turns, broken);
    workflow(home, "  pay: { agent: ./payer, intent: Pay }\n");
    const failed = await run(home);
    assert.match(failed.error?.message ?? "", /no-such/);
    const again = await resume(home, failed.run_id);
    assert.deepEqual(
      [again.state, again.exit_code],
      ["dead", 1],
      "it still fails, and waits for nobody",
    );
    const [, child] = await processes(home);
    agent(home, "payer", turns, ledgerMount(home.folder));
    const alone = await resume(home, child?.run_id ?? "");
    assert.equal(alone.result, "Paid.", JSON.stringify(alone));
    const last = await resume(home, failed.run_id);
    assert.equal(last.result, "Paid.", JSON.stringify(last));
    assert.deepEqual(payments(home), ["Pay"]);
    assert.equal((await processes(home)).length, 2);
    const plan = await home.system.planResume({
      ...resumeOf(home, failed.run_id),
      ...{ fork: true, again: { node: "pay", andAfter: false } },
    });
    assert.deepEqual(plan.fork?.stays_done.map(({ call }) => call), ["n.pay"], "it is told once");
  });
});

Deno.test("what was done for an item doesn't count for another that takes its place in the file; items may come at the end", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    agent(home, "broken", [{ text: "x" }], "mcp: { servers: { no: { command: no-such } } }\n");
    const over = (items: string, last = "broken") =>
      workflow(
        home,
        `  each: { agent: ./echo, intent: "\${{ item }}", for_each: ${items} }
  end: { agent: ./${last}, intent: End, depends_on: [each] }
`,
        'result: "${{ nodes.each.result }}"',
      );
    over("[x, y]");
    const { run_id } = await run(home);
    over("[y, z]", "echo");
    const refused = /Call n\.each\.0 was begun for "x", and "for_each" has "y" in its place now/;
    const plan = await home.system.planResume(resumeOf(home, run_id));
    assert.match(plan.error?.message ?? "", refused);
    assert.equal(plan.exit_code, 2);
    await assert.rejects(resume(home, run_id), refused);
    over("[x, y, z]", "echo");
    const last = await resume(home, run_id);
    assert.equal(last.result, '["<x>","<y>","<z>"]', JSON.stringify(last));
    assert.deepEqual(starts(last), ["n.each.2", "n.end"]);
    over("[z]", "echo");
    assert.equal((await resume(home, run_id, { intent: "Anew" })).result, '["<z>"]');
  });
});

Deno.test("a completed workflow takes a new intent, with which all of it is done anew", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    workflow(
      home,
      `  a: { agent: ./echo, intent: "\${{ intent }}" }
  b: { agent: ./echo, intent: "\${{ nodes.a.result }}", depends_on: [a] }
`,
      "intent: first",
    );
    const report = await run(home);
    assert.equal(report.result, "<<first>>");
    await assert.rejects(resume(home, report.run_id), /has completed/);
    const second = await resume(home, report.run_id, { intent: "second" });
    assert.equal(second.result, "<<second>>", JSON.stringify(second.error));
    assert.deepEqual(starts(second), ["n.a", "n.b"]);
    assert.deepEqual((await home.system.replay(report.run_id)).differences, []);
  });
});

Deno.test("a node that has begun can't be renamed under its run, nor the file become another kind; what is new beside it can", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    agent(home, "broken", [{ text: "x" }], "mcp: { servers: { no: { command: no-such } } }\n");
    const nodes = (first: string, last: string, more = "") =>
      `  ${first}: { agent: ./echo, intent: one }
  end: { agent: ./${last}, intent: End, depends_on: [${first}] }
${more}`;
    workflow(home, nodes("one", "broken"));
    const { run_id } = await run(home);
    const refuses = async (text: RegExp) => {
      const plan = await home.system.planResume(resumeOf(home, run_id));
      assert.match(plan.error?.message ?? "", text);
      await assert.rejects(resume(home, run_id), text);
    };
    workflow(home, nodes("uno", "echo"));
    await refuses(/Node "one" has begun and is not in the file any more, in which "uno" is new/);
    workflow(home, "  one: { agent: ./echo, intent: one, for_each: [a] }\n");
    await refuses(/Node "one" has begun without "for_each"/);
    home.write(
      "flow.yaml",
      "name: flow\ninstructions: x\nmodels: { provider: ollama, preferred: m }\n",
    );
    await refuses(/The run is that of a workflow, and its file is an agent now/);
    workflow(home, nodes("one", "echo", "  new: { agent: ./echo, intent: new }\n"));
    const last = await resume(home, run_id);
    assert.equal(last.exit_code, 0, JSON.stringify(last.error));
    assert.deepEqual(starts(last).toSorted(), ["n.end", "n.new"]);
  });
});
