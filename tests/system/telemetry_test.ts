/** OpenTelemetry over whole runs: a collector on loopback, and the tree of what it is sent. */
import assert from "node:assert/strict";
import type { RunReport } from "../../src/base/operations.ts";
import { type CollectedSpan, startCollector } from "../servers/collector.ts";
import { ledgerMount, type ModelHome, withModelHome } from "./model_home.ts";

const pay = (note: string) => ({ tool: "pay", input: { note } });
const HEADER = "collector-canary-1234567";

function put(home: ModelHome, name: string, turns: object[], more = ""): void {
  home.write(`${name}/script.yaml`, JSON.stringify({ turns, final: "Nothing more." }));
  home.write(
    `${name}/agent.yaml`,
    `name: ${name}\ninstructions: Do it.\nmodels: { provider: scripted, script: script.yaml }\n${more}`,
  );
}

async function resume(home: ModelHome, run: string, turns?: number): Promise<RunReport> {
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const off = { stored: false, acceptCut: false, fork: false, yes: false, trust: false };
  const budget = turns === undefined ? {} : { budget: { turns } };
  const request = { run, client, unknown: [], ...off, ...budget };
  return await (await home.system.resume(request, { onEvent: () => {} })).done;
}

const tracing = (folder: string) => ledgerMount(folder).replace('/ledger"]', '/ledger","--trace"]');
const childOf = (parent: CollectedSpan | undefined) => (span: CollectedSpan) =>
  span.parent === parent?.id;
const namesOf = (spans: readonly CollectedSpan[]) => spans.map(({ name }) => name).sort();

/** Two turns before a limit, the rest after a resume: calls at once, one that fails, and a child. */
function putTree(home: ModelHome): void {
  put(home, "child", [{ calls: [pay("child")] }, { text: "Paid." }], tracing(home.folder));
  const fail = { tool: "fail", input: { message: "payload-of-an-error" } };
  const ask = { tool: "agent__child", input: { intent: "payload-of-a-child" } };
  put(
    home,
    "lead",
    [{ calls: [pay("one"), pay("two"), fail] }, { calls: [ask] }, { text: "All done." }],
    `${tracing(home.folder)}agents: [{ name: child, manifest: ../child }]\nbudget: { turns: 1 }\n`,
  );
}

Deno.test("[F17] a collector gets the tree of a run with calls at once, a failure, a resume and a child", async () => {
  await using collector = startCollector();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${HEADER}`,
    OTEL_SERVICE_NAME: "agents-here",
  };
  await withModelHome(env, async (home) => {
    putTree(home);
    const first = await home.run("./lead");
    assert.equal(first.reason, "limit", JSON.stringify(first.error));
    const report = await resume(home, first.run_id, 10);
    assert.equal(report.result, "All done.", JSON.stringify(report.error));
    const spans = await collector.spans(({ name }) => name.startsWith("invoke_agent"), 3);

    assert.deepEqual([...new Set(spans.map(({ trace }) => trace))], [
      first.run_id.replaceAll("-", ""),
    ]);
    assert.equal(new Set(spans.map(({ id }) => id)).size, spans.length, "every id is used once");
    const byName = (name: string) => spans.filter((span) => span.name === name);
    const [before, after] = byName("invoke_agent lead").sort((a, b) => a.start < b.start ? -1 : 1);
    assert.equal(before?.parent, undefined);
    assert.equal(after?.parent, undefined);
    assert.deepEqual(after?.links, [before?.id]);
    assert.equal(before?.attributes["error.type"], "BUDGET_EXCEEDED");
    assert.equal(before?.attributes["rnix.outcome"], "limit");
    assert.equal(after?.attributes["rnix.outcome"], "completed");
    assert.equal(after?.attributes["gen_ai.conversation.id"], first.run_id);
    assert.equal(after?.attributes["gen_ai.provider.name"], "scripted");

    assert.deepEqual(namesOf(spans.filter(childOf(before))), ["step 1"]);
    assert.deepEqual(namesOf(spans.filter(childOf(after))), ["step 2", "step 3"]);
    const [one] = byName("step 1").filter(childOf(before));
    const parts = spans.filter(childOf(one));
    assert.deepEqual(
      parts.map(({ attributes }) => attributes["gen_ai.operation.name"]).sort(),
      ["chat", "execute_tool", "execute_tool", "execute_tool"],
    );
    for (const part of parts) {
      assert.ok(part.start >= (one?.start ?? "") && part.end <= (one?.end ?? ""), part.name);
    }
    const failed = parts.filter((span) => span.failed);
    assert.deepEqual(failed.map(({ attributes }) => attributes["error.type"]), ["tool_error"]);

    const [called] = byName("execute_tool agent__child");
    const [child] = byName("invoke_agent child");
    assert.equal(child?.parent, called?.id);
    assert.equal(spans.find(({ id }) => id === called?.parent)?.name, "step 2");
    const paid = spans.filter(({ name }) => name === "execute_tool mcp__world__pay");
    const told = Deno.readTextFileSync(`${home.folder}/ledger`).trim().split("\n");
    assert.deepEqual(
      told.map((line) => line.split(" ")[3]).sort(),
      paid.map(({ trace, id }) => `00-${trace}-${id}-01`).sort(),
    );
    assert.equal(paid.length, 3);

    assert.deepEqual([...collector.services], ["agents-here"]);
    assert.equal(collector.requests[0]?.headers.get("authorization"), `Bearer ${HEADER}`);
    const text = collector.requests.map(({ body }) => body).join("\n");
    for (const payload of ["payload-of", "All done", "Do it", "note", "paid", HEADER]) {
      assert.ok(!text.includes(payload), `"${payload}" is in what was sent`);
    }
    assert.ok(!home.left().includes(HEADER));
  });
});

Deno.test("[F17] a child that is taken up by itself lies in the trace of the run at the top", async () => {
  await using collector = startCollector();
  await withModelHome({ OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` }, async (home) => {
    const more = `${ledgerMount(home.folder)}budget: { turns: 1 }\n`;
    put(home, "child", [{ calls: [pay("x")] }, { text: "Paid." }], more);
    const calls = [{ calls: [{ tool: "agent__child", input: { intent: "Pay" } }] }, { text: "Ok" }];
    put(home, "lead", calls, "agents: [{ name: child, manifest: ../child }]\n");
    const { run_id } = await home.run("./lead");
    assert.equal((await resume(home, "2", 9)).exit_code, 0);
    const isProcess = ({ name }: CollectedSpan) => name.startsWith("invoke_agent");
    const spans = await collector.spans(isProcess, 3);
    assert.deepEqual([...new Set(spans.map(({ trace }) => trace))], [run_id.replaceAll("-", "")]);
    const [first, second] = spans.filter(({ name }) => name === "invoke_agent child")
      .sort((a, b) => a.start < b.start ? -1 : 1);
    assert.deepEqual(second?.links, [first?.id]);
  });
});

Deno.test("[F17] a fork has a trace of its own, and goes on from no process", async () => {
  await using collector = startCollector();
  await withModelHome({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, async (home) => {
    put(home, "lead", [{ calls: [pay("one")] }, { text: "Done." }], ledgerMount(home.folder));
    const { run_id } = await home.run("./lead");
    const client = { cwd: home.folder, env: home.env, interactive: false };
    const off = { stored: false, acceptCut: false, trust: false, unknown: [] };
    const request = { run: run_id, client, ...off, fork: true, yes: true, fromStep: 1 };
    const fork = await (await home.system.resume(request, { onEvent: () => {} })).done;
    assert.equal(fork.exit_code, 0, JSON.stringify(fork.error));
    const isProcess = ({ name }: CollectedSpan) => name.startsWith("invoke_agent");
    const spans = await collector.spans(isProcess, 2);
    const of = (run: string) => spans.filter(({ trace }) => trace === run.replaceAll("-", ""));
    assert.deepEqual(of(fork.run_id).filter(isProcess).map(({ links }) => links), [[]]);
    assert.equal(of(run_id).filter(isProcess).length, 1);
  });
});

Deno.test("[F17] a workflow's nodes lie in its process, each with its own within", async () => {
  await using collector = startCollector();
  await withModelHome({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, async (home) => {
    put(home, "echo", [{ text: "Yes." }]);
    const nodes = "  a: { agent: ./echo, intent: A }\n  b: { agent: ./echo, intent: B }\n";
    home.write("flow.yaml", `kind: workflow\nname: flow\nnodes:\n${nodes}`);
    const { exit_code, run_id, error } = await home.run("./flow.yaml");
    assert.equal(exit_code, 0, JSON.stringify(error));
    const isProcess = ({ name }: CollectedSpan) => name.startsWith("invoke_agent");
    const spans = await collector.spans(isProcess, 3);
    const flow = spans.find(({ name }) => name === "invoke_agent flow");
    assert.equal(flow?.attributes["gen_ai.provider.name"], undefined);
    assert.equal(flow?.trace, run_id.replaceAll("-", ""));
    const calls = spans.filter(childOf(flow));
    assert.equal(calls.length, 2);
    for (const call of calls) {
      assert.deepEqual(namesOf(spans.filter(childOf(call))), ["invoke_agent echo"]);
    }
    assert.equal(
      spans.filter(({ name }) => name.startsWith("chat ")).length,
      2,
      namesOf(spans).join(),
    );
  });
});

const OFF: { [what: string]: (url: string) => { [name: string]: string } } = {
  "nothing is asked for": () => ({}),
  "the kit is disabled": (url) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_SDK_DISABLED: "true",
  }),
};

for (const [what, env] of Object.entries(OFF)) {
  Deno.test(`[F17] nothing is sent, to a server neither, where ${what}`, async () => {
    await using collector = startCollector();
    await withModelHome(env(collector.url), async (home) => {
      put(home, "lead", [{ calls: [pay("one")] }, { text: "Done." }], tracing(home.folder));
      assert.equal((await home.run("./lead")).exit_code, 0);
      const told = Deno.readTextFileSync(`${home.folder}/ledger`).trim();
      assert.equal(told.split(" ")[3], "-");
    });
    assert.equal(collector.requests.length, 0);
  });
}

Deno.test("[F17] a collector that is down, or takes for ever, or refuses, doesn't disturb a run", async () => {
  const held = Promise.withResolvers<void>();
  await using stuck = startCollector(async () => {
    await held.promise;
    return 200;
  });
  await using refusing = startCollector(() => Promise.resolve(401));
  const down = "http://127.0.0.1:9/";
  for (const url of [down, stuck.url, refusing.url, "no-address-${x}", "http://u:p@127.0.0.1/"]) {
    await withModelHome({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url }, async (home) => {
      put(home, "lead", [{ calls: [pay("one")] }, { text: "Done." }], ledgerMount(home.folder));
      const report = await home.run("./lead");
      assert.equal(report.exit_code, 0, JSON.stringify(report.error));
      const notices = report.events.flatMap((event) =>
        event.type === "notice" ? event.message : []
      );
      const isWrong = url.startsWith("no-") || url.includes("@");
      if (isWrong) assert.match(notices.join(), /No telemetry: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT/);
      assert.ok(!notices.join().includes(url));
    });
  }
  held.resolve();
});
