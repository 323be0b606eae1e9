/** Workflows in whole runs: every node a process of its own, on scripted models. */
import assert from "node:assert/strict";
import { ledgerMount, withModelHome } from "./model_home.ts";
import { payments, processes } from "./tree_stage.ts";
import { agent, echo, mostAtOnce, resume, run, starts, workflow } from "./workflow_stage.ts";

Deno.test("a diamond: the middle starts when the top is over, the bottom when both are", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    workflow(
      home,
      `  top: { agent: ./echo, intent: "\${{ params.what }}" }
  left: { agent: ./echo, intent: "L \${{ nodes.top.result }}", depends_on: [top] }
  right: { agent: ./echo, intent: "R \${{ nodes.top.result }}", depends_on: [top] }
  end: { agent: ./echo, intent: "\${{ nodes.left.result }}\${{ nodes.right.result }}", depends_on: [left, right] }
`,
      "parameters: { what: { default: x } }",
    );
    const report = await run(home, { parameters: { what: "y" } });
    assert.equal(report.result, "<<L <y>><R <y>>>", JSON.stringify(report.error));
    assert.deepEqual(starts(report), ["n.top", "n.left", "n.right", "n.end"]);
    assert.equal(report.turns, 0, "it uses nothing itself");
    assert.equal(report.tree?.turns, 4, "what its nodes used");
    const rows = await home.system.processes({ all: true });
    const [root] = rows;
    assert.deepEqual(root?.tree, report.tree);
    assert.deepEqual((await home.system.report(report.run_id))?.tree, report.tree);
    assert.deepEqual(rows.map(({ ppid }) => ppid), [0, ...rows.slice(1).map(() => root?.pid)]);
    assert.equal(rows.length, 5);
    assert.deepEqual((await home.system.replay(report.run_id)).differences, []);
  });
});

Deno.test("a run that is told nothing has the workflow's own intent, and is listed with it", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    workflow(home, '  a: { agent: ./echo, intent: "${{ intent }}" }\n', "intent: Look at it");
    const own = await run(home);
    assert.equal(own.result, "<Look at it>", JSON.stringify(own.error));
    assert.equal((await run(home, { intent: "Other" })).result, "<Other>");
    const rows = await home.system.processes({ all: true });
    const told = rows.filter(({ ppid }) => ppid === 0).map(({ intent }) => intent);
    assert.deepEqual(told, ["Look at it", "Other"]);
  });
});

Deno.test("fifty at a limit of eight: never more at once, started in the order of the list", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    const list = JSON.stringify(Array.from({ length: 50 }, (_, index) => index));
    workflow(
      home,
      `  all: { agent: ./echo, intent: "\${{ item }}", for_each: ${list} }\n`,
      "max_parallel: 8\nresult: '${{ nodes.all.result[49] }}'",
    );
    const report = await run(home);
    assert.equal(report.result, "<49>", JSON.stringify(report.error));
    assert.deepEqual(starts(report), Array.from({ length: 50 }, (_, index) => `n.all.${index}`));
    assert.equal(mostAtOnce(report), 8);
  });
});

Deno.test("a node that fails stops the workflow, or lets it go on without what waits for it", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    agent(home, "broken", [{ text: "x" }], "mcp: { servers: { no: { command: no-such } } }\n");
    const nodes = (more: string) =>
      `  a: { agent: ./broken, intent: a${more} }
  b: { agent: ./echo, intent: b, depends_on: [a] }
  c: { agent: ./echo, intent: c }
  d: { agent: ./echo, intent: d, depends_on: [c] }
`;
    workflow(home, nodes(""));
    const stopped = await run(home);
    assert.equal(stopped.exit_code, 1);
    assert.match(
      stopped.error?.message ?? "",
      /Node "a" failed: Agent "broken" failed: \[NOT_FOUND\]/,
    );
    assert.deepEqual(starts(stopped).slice(0, 2), ["n.a", "n.c"]);
    assert.ok(!starts(stopped).includes("n.b"));
    workflow(home, nodes(", on_failure: continue"));
    const went = await run(home);
    assert.equal(went.exit_code, 0, JSON.stringify(went.error));
    assert.deepEqual(starts(went), ["n.a", "n.c", "n.d"]);
    assert.match(went.result, /^<d>\n\nNot done:\n- a failed: .*\n- b was skipped: "a" failed$/);
    assert.equal(went.failed_calls, 1);
  });
});

Deno.test("a node that is retried succeeds the third time, and what was done before isn't again", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    // Each attempt starts its server twice, discovery and `initialize`: the third one gets it.
    const count =
      `echo x >> "${home.folder}/tries"; test $(wc -l < "${home.folder}/tries") -ge 5 && exec `;
    const mount = ledgerMount(home.folder);
    home.write("serve.sh", `${count}"$@"\n`);
    const command = mount.replace(`command: "${Deno.execPath()}"`, "command: sh")
      .replace("args: [", `args: ["${home.folder}/serve.sh","${Deno.execPath()}",`);
    agent(
      home,
      "third",
      [{ calls: [{ tool: "pay", input: { note: "once" } }] }, { text: "Paid." }],
      command,
    );
    workflow(
      home,
      `  first: { agent: ./echo, intent: first }
  flaky: { agent: ./third, intent: pay, depends_on: [first], retry: { attempts: 3, backoff: 10ms } }
`,
    );
    const report = await run(home);
    assert.equal(report.result, "Paid.", JSON.stringify(report.error));
    assert.deepEqual(starts(report), ["n.first", "n.flaky", "n.flaky", "n.flaky"]);
    assert.deepEqual(payments(home), ["once"]);
  });
});

Deno.test("for_each over a previous node's structured result; an answer that doesn't fit is asked for again", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    agent(home, "planner", [{ text: "There are two parts." }]);
    agent(home, "lister", [{ text: '["p", "q"]' }]);
    const schema = "{ type: array, items: { type: string }, minItems: 2 }";
    const nodes = (planner: string) =>
      `  plan: { agent: ./${planner}, intent: plan, output: ${schema} }
  part: { agent: ./echo, intent: "\${{ item }}", depends_on: [plan], for_each: "\${{ nodes.plan.output }}" }
  end: { agent: ./echo, intent: "\${{ nodes.part.result }}", depends_on: [part] }
`;
    workflow(home, nodes("lister"));
    const report = await run(home);
    assert.equal(report.result, '<["<p>","<q>"]>', JSON.stringify(report.error));
    assert.deepEqual(starts(report), ["n.plan", "n.part.0", "n.part.1", "n.end"]);
    workflow(home, nodes("planner"));
    const failed = await run(home);
    assert.deepEqual(starts(failed), ["n.plan", "n.plan", "n.plan"]);
    assert.match(
      failed.error?.message ?? "",
      /doesn't fit the schema of "output", asked 3 times: it is not JSON/,
    );
  });
});

Deno.test("a workflow in a workflow has its own journal, and the parameters that it is given", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    home.write(
      "inner/agent.yaml",
      `kind: workflow\nname: inner\nparameters: { who: }\nnodes:\n  x: { agent: ../echo, intent: "\${{ params.who }}: \${{ intent }}" }\n`,
    );
    workflow(
      home,
      `  a: { agent: ./echo, intent: a }
  b: { workflow: ./inner, intent: "\${{ nodes.a.result }}", with: { who: me }, depends_on: [a] }
`,
    );
    const report = await run(home);
    assert.equal(report.result, "<me: <a>>", JSON.stringify(report.error));
    const rows = await home.system.processes({ all: true });
    assert.deepEqual(rows.map(({ agent }) => agent).sort(), ["echo", "echo", "flow", "inner"]);
    agent(home, "lead", [{ text: "x" }], "agents: [{ name: inner, manifest: ../inner }]\n");
    await assert.rejects(
      run(home, { manifest: "./lead" }),
      /Agent "lead" can't start "inner": its parameter "who" has no default/,
    );
    workflow(home, "  b: { workflow: ./inner, intent: b, with: { whom: me } }\n");
    await assert.rejects(run(home), (thrown: Error) => {
      assert.match(thrown.message, /node "b": No parameter "whom"; did you mean `who`\?/);
      assert.match(thrown.message, /node "b": Parameter "who" of "inner" has no value/);
      return true;
    });
  });
});

Deno.test("the original's compose file runs: each agent knows what came before it", async () => {
  await withModelHome({}, async (home) => {
    echo(home, "first");
    echo(home, "second");
    home.write(
      "compose.yaml",
      `version: "1.0"\nintent: A report\nagents:
  look: { intent: Look, agent: ./first }
  write: { intent: Write, agent: ./second, depends_on: { look: completed } }
`,
    );
    const report = await run(home, { manifest: "./compose.yaml" });
    assert.match(
      report.result,
      /^<Write\n\nThe goal of the whole: A report\n\nWhat look came to:\n<Look\n\nThe goal of the whole: A report>>$/,
    );
    assert.deepEqual(starts(report), ["n.look", "n.write"]);
  });
});

Deno.test("an agent that isn't there, and a parameter that lacks a value, start nothing", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    workflow(home, "  a: { agent: ./ehco, intent: a }\n  b: { agent: ehco, intent: b }\n");
    await assert.rejects(run(home), (thrown: Error) => {
      assert.match(thrown.message, /flow\.yaml:5:15: No agent at "\.\/ehco"/);
      assert.match(thrown.message, /flow\.yaml:6:15: No agent "ehco"; there are/);
      return true;
    });
    workflow(home, "  a: { agent: ./echo, intent: a }\n", "parameters: { p: }");
    await assert.rejects(run(home), /Parameter "p" has no value; give it with --set p=…/);
    await assert.rejects(
      run(home, { manifest: "./echo", parameters: { p: "1" } }),
      /is no workflow/,
    );
    assert.deepEqual(await home.system.processes({ all: true }), []);
  });
});

Deno.test("workflows that are certain to be too deep in each other start nothing; a condition may end them", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    const inItself = (more: string) =>
      workflow(
        home,
        `  first: { agent: ./echo, intent: a }
  again: { workflow: ./flow.yaml, intent: b, depends_on: [first]${more} }
`,
        "parameters: { go: { default: true } }",
      );
    inItself("");
    const chain = [...Array(5).fill("again"), "first"].join(" → ");
    await assert.rejects(run(home), (thrown: Error) => {
      assert.ok(
        thrown.message.includes(
          `node "again": Agents may start each other 5 deep at most, and ${chain} would go deeper`,
        ),
        thrown.message,
      );
      return true;
    });
    assert.deepEqual(await home.system.processes({ all: true }), []);
    inItself(', when: params.go, with: { go: "false" }');
    const report = await run(home);
    assert.equal(report.exit_code, 0, JSON.stringify(report));
    assert.equal((await processes(home)).length, 4, JSON.stringify(report));
  });
});

Deno.test("a pause before a repeat doesn't hold up a workflow that is stopped by another node", async () => {
  await withModelHome({}, async (home) => {
    agent(home, "broken", [{ text: "x" }], "mcp: { servers: { no: { command: no-such } } }\n");
    workflow(
      home,
      `  a: { agent: ./broken, intent: a, retry: { attempts: 2, backoff: 1m } }
  b: { agent: ./broken, intent: b }
`,
    );
    const report = await run(home);
    assert.match(report.error?.message ?? "", /Node "b" failed/);
    assert.doesNotMatch(home.left(), /"type":"timer"/);
  });
});

Deno.test("a node runs again in a fork, alone or with all after it, once that is confirmed", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    workflow(
      home,
      `  a: { agent: ./echo, intent: a }
  b: { agent: ./echo, intent: "\${{ nodes.a.result }}", depends_on: [a] }
  c: { agent: ./echo, intent: "\${{ nodes.b.result }}", depends_on: [b] }
  d: { agent: ./echo, intent: d }
`,
    );
    const { run_id } = await run(home);
    const again = (node: string, andAfter: boolean, yes = true) =>
      resume(home, run_id, { fork: true, again: { node, andAfter }, yes });
    await assert.rejects(
      again("b", false, false),
      /to run again was done before, and its effects stay done: n\.b agent__echo \(write\)/,
    );
    await assert.rejects(again("bb", true), /has no node "bb"/);
    const plan = await home.system.planResume({
      run: run_id,
      client: { cwd: home.folder, env: home.env, interactive: false },
      unknown: [],
      ...{ stored: false, acceptCut: false, fork: true, yes: true, trust: false },
      again: { node: "b", andAfter: true },
    });
    assert.deepEqual(plan.fork?.again, ["b", "c"]);
    assert.deepEqual(plan.send.map(({ call }) => call), ["n.b"]);
    const alone = await again("b", false);
    assert.deepEqual([alone.exit_code, starts(alone)], [0, ["n.b"]], JSON.stringify(alone.error));
    const all = await again("b", true);
    assert.deepEqual(starts(all), ["n.b", "n.c"]);
    assert.equal(all.result, "## c\n\n<<<a>>>\n\n## d\n\n<d>");
    assert.deepEqual((await home.system.replay(all.run_id)).differences, []);
    await assert.rejects(
      resume(home, "2", { fork: true, again: { node: "b", andAfter: true }, yes: true }),
      /is no workflow/,
    );
  });
});

Deno.test("a workflow can be looked at before it runs, and a run of it while nothing is at work", async () => {
  await withModelHome({}, async (home) => {
    echo(home);
    agent(home, "broken", [{ text: "x" }], "mcp: { servers: { no: { command: no-such } } }\n");
    workflow(
      home,
      `  a: { agent: ./echo, intent: "\${{ item }}", for_each: [1, 2] }
  b: { agent: ./broken, intent: b, on_failure: continue }
  c: { agent: ./echo, intent: c, depends_on: [b] }
  d: { agent: ./echo, intent: d, depends_on: [a], when: params.p == "x" }
`,
      "parameters: { p: }",
    );
    const client = { cwd: home.folder, env: home.env };
    const plan = await home.system.graph({ of: "./flow.yaml", client });
    assert.deepEqual(plan.nodes.map(({ name, wave, state }) => [name, wave, state]), [
      ["a", 1, undefined],
      ["b", 1, undefined],
      ["c", 2, undefined],
      ["d", 2, undefined],
    ]);
    assert.deepEqual(plan.parameters, { p: null });
    const dry = { of: "./flow.yaml", client, parameters: {} };
    await assert.rejects(home.system.graph(dry), /Parameter "p" has no value/);
    await assert.rejects(home.system.graph({ of: "./echo", client }), /only workflows have nodes/);
    assert.deepEqual(await home.system.processes({ all: true }), []);
    const report = await run(home, { parameters: { p: "y" } });
    const graph = await home.system.graph({ of: report.run_id, client });
    assert.deepEqual(graph.nodes.map(({ name, state, reason }) => [name, state, reason]), [
      ["a", "completed", undefined],
      ["b", "failed", graph.nodes[1]?.reason],
      ["c", "skipped", '"b" failed'],
      ["d", "skipped", 'when: params.p == "x"'],
    ]);
    assert.deepEqual(graph.nodes[0]?.items, { total: 2, completed: 2, failed: 0, running: 0 });
    assert.deepEqual(graph.nodes[0]?.processes?.map(({ call }) => call).sort(), [
      "n.a.0",
      "n.a.1",
    ]);
    assert.equal(graph.run?.state, "dead");
    assert.deepEqual(graph.parameters, { p: "y" });
  });
});

Deno.test("a workflow that an agent starts is a child like any other, and a limit on it holds for all below", async () => {
  await withModelHome({}, async (home) => {
    echo(home, "echo", {});
    workflow(home, `  a: { agent: ./echo, intent: "in: \${{ intent }}" }\n`);
    const ask = { calls: [{ tool: "agent__flow", input: { intent: "hello" } }] };
    agent(
      home,
      "lead",
      [ask, { text: "${{ results.t1.0.text }}" }],
      "agents: [{ name: flow, manifest: ../flow.yaml }]\n",
    );
    assert.equal((await run(home, { manifest: "./lead" })).result, "<in: hello>");
    const chain = ["a", "b", "c", "d"].map((name, index, all) =>
      `  ${name}: { agent: ./echo, intent: ${"word ".repeat(200)}${
        index === 0 ? "" : `, depends_on: [${all[index - 1]}]`
      } }\n`
    );
    workflow(home, chain.join(""), "budget: { tokens: 700 }");
    const limited = await run(home);
    assert.deepEqual([limited.exit_code, limited.reason], [6, "limit"], JSON.stringify(limited));
    assert.ok(starts(limited).length < 4);
    const last = await resume(home, limited.run_id, { budget: { tokens: 100_000 } });
    assert.equal(last.exit_code, 0, JSON.stringify(last.error));
    assert.equal([...starts(limited), ...starts(last)].at(-1), "n.d");
  });
});
