/** What `resume --plan` says against what the resume then does; and what a refused resume leaves behind. */
import assert from "node:assert/strict";
import type { SysError } from "../src/base/errors.ts";
import type { LiveSystem, Reader, ResumeRequest, RunEvent } from "../src/base/operations.ts";
import { createSystem } from "../src/daemon/local_system.ts";
import { removeFolder } from "./doubles/remove_folder.ts";

const LEDGER = new URL("./servers/ledger_server.ts", import.meta.url).pathname;
const silent = { onEvent: () => {} };

interface Place {
  system: LiveSystem & Reader;
  folder: string;
  agent(name: string, manifest: string, script: string): void;
  run(name: string): ReturnType<LiveSystem["run"]>;
  request(run: string, changes?: Partial<ResumeRequest>): ResumeRequest;
}

async function inPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-plan-" }));
  const env = { ...Deno.env.toObject(), RNIX_HOME: `${folder}/home` };
  const uid = Deno.uid() ?? 0;
  const running = await createSystem({ env, uid, osPid: Deno.pid });
  const client = { cwd: folder, env, interactive: false };
  const { system } = running;
  const place: Place = {
    system,
    folder,
    agent(name, manifest, script) {
      Deno.mkdirSync(`${folder}/${name}`, { recursive: true });
      const head = `name: ${name}\ninstructions: x\n` +
        "models: { provider: scripted, script: script.yaml }\n";
      Deno.writeTextFileSync(`${folder}/${name}/agent.yaml`, head + manifest);
      Deno.writeTextFileSync(`${folder}/${name}/script.yaml`, script);
    },
    run: (name) =>
      system.run({ manifest: `${folder}/${name}`, intent: "go", client, trust: false }, silent),
    request: (run, changes = {}) => ({
      run,
      client,
      unknown: [],
      stored: false,
      acceptCut: false,
      fork: false,
      yes: false,
      trust: false,
      ...changes,
    }),
  };
  try {
    await work(place);
  } finally {
    await running.close();
    await removeFolder(folder);
  }
}

const TALKER = "turns: [{ calls: [{ tool: x, offered: false }] }, { text: done }]\n";

Deno.test("a plan with --fork is that of the fork: its turns, what stays done, its exit code", async () => {
  await inPlace(async ({ system, agent, run, request }) => {
    agent("talker", "", TALKER);
    const { done, runId } = await run("talker");
    assert.equal((await done).exit_code, 0);
    const itself = await system.planResume(request(runId));
    assert.deepEqual([itself.exit_code, itself.next], [2, "refused"]);
    const fork = await system.planResume(request(runId, { fork: true, fromStep: 1 }));
    assert.deepEqual(
      [fork.exit_code, fork.next, fork.turns, fork.fork],
      [0, "model request", 1, { from_step: 1, stays_done: [] }],
    );
    const beyond = await system.planResume(request(runId, { fork: true, fromStep: 7 }));
    assert.deepEqual([beyond.exit_code, beyond.error?.code], [2, "INVALID"]);
    assert.equal((await system.processes({ all: true })).length, 1, "a plan does nothing");
  });
});

Deno.test("a plan and its fork list what stays done, and both want --yes", async () => {
  await inPlace(async ({ system, folder, agent, run, request }) => {
    const server = `command: "${Deno.execPath()}", args: ["run", "-A", "${LEDGER}", "${folder}/l"]`;
    const pay = (note: string) => `{ calls: [{ tool: pay, input: { note: ${note} } }] }`;
    agent(
      "payer",
      `mcp: { servers: { ledger: { ${server} } } }\n`,
      `turns: [${pay("a")}, ${pay("b")}, { text: done }]\n`,
    );
    const { done, runId } = await run("payer");
    assert.equal((await done).exit_code, 0);
    const asked = request(runId, { fork: true, fromStep: 1 });
    const plan = await system.planResume(asked);
    assert.equal(plan.exit_code, 2);
    assert.deepEqual(plan.fork?.stays_done.map(({ call }) => call), ["t2.1"]);
    await assert.rejects(
      system.resume(asked, silent),
      (thrown: SysError) => thrown.exitCode === plan.exit_code,
    );
    const agreed = await system.planResume({ ...asked, yes: true });
    assert.deepEqual([agreed.exit_code, agreed.mounts], [0, ["ledger"]]);
  });
});

Deno.test("a fork whose resume is refused leaves no run behind", async () => {
  await inPlace(async ({ system, agent, run, request }) => {
    agent("talker", "", TALKER);
    const { done, runId } = await run("talker");
    await done;
    const fork = { fork: true, fromStep: 1, yes: true };
    const refusals: Partial<ResumeRequest>[] = [
      { ...fork, intent: "again" },
      { ...fork, model: "other/", budget: { cost_usd: 1 } },
      { ...fork, unknown: [{ call: "t9.9", decision: { how: "retry" } }] },
    ];
    for (const changes of refusals) {
      const plan = await system.planResume(request(runId, changes));
      await assert.rejects(system.resume(request(runId, changes), silent));
      if (changes.budget === undefined) assert.equal(plan.exit_code, 2, JSON.stringify(changes));
    }
    const rows = await system.processes({ all: true });
    assert.deepEqual(rows.map(({ run_id }) => run_id), [runId]);
  });
});

Deno.test("a plan knows a limit that is reached, and one that is raised", async () => {
  await inPlace(async ({ system, agent, run, request }) => {
    agent("talker", "budget: { turns: 1 }\n", TALKER);
    const { done, runId } = await run("talker");
    assert.equal((await done).exit_code, 6);
    const plan = await system.planResume(request(runId));
    assert.deepEqual([plan.exit_code, plan.next], [6, "suspend (limit)"]);
    assert.match(plan.error?.message ?? "", /"turns" is used up: 1 of 1/);
    const again = await system.resume(request(runId), silent);
    assert.equal((await again.done).exit_code, plan.exit_code);
    const raised = await system.planResume(request(runId, { budget: { turns: 2 } }));
    assert.deepEqual([raised.exit_code, raised.next], [0, "model request"]);
  });
});

Deno.test("a dead run's plan goes by the manifest as it is now, with --stored by the old one", async () => {
  await inPlace(async ({ system, folder, agent, run, request }) => {
    agent("talker", "", "turns: [{ text: late, delay: 60s }]\n");
    const { done, runId } = await run("talker");
    await system.signal(runId, "TERM");
    await done;
    assert.equal((await system.planResume(request(runId))).exit_code, 0);
    agent("talker", "budget: { turns: 1, tokens: zero }\n", TALKER);
    const broken = await system.planResume(request(runId));
    assert.deepEqual([broken.exit_code, broken.error?.code], [2, "INVALID"]);
    assert.match(broken.error?.hint ?? "", /--stored/);
    Deno.removeSync(`${folder}/talker`, { recursive: true });
    const stored = await system.planResume(request(runId, { stored: true }));
    assert.deepEqual([stored.exit_code, stored.next], [0, "model request"]);
  });
});

Deno.test("a plan lists what becomes of each server's known tools, and the resume tells the differences", async () => {
  await inPlace(async ({ system, folder, agent, run, request }) => {
    const ledger = (name: string) =>
      `${name}: { command: "${Deno.execPath()}", args: ["run", "-A", "${LEDGER}", "${folder}/${name}"] }`;
    const servers = (...names: string[]) =>
      `mcp: { servers: { ${names.map(ledger).join(", ")} } }\n`;
    agent("talker", servers("one", "two"), "turns: [{ text: late, delay: 60s }]\n");
    const { done, runId } = await run("talker");
    const mounted = Promise.withResolvers<void>();
    const onEvent = (event: RunEvent) => event.type === "model.started" && mounted.resolve();
    await system.attach(runId, "start", { onEvent });
    await mounted.promise;
    await system.signal(runId, "TERM");
    await done;
    agent("talker", servers("one", "three"), "turns: [{ text: done }]\n");
    const plan = await system.planResume(request(runId));
    assert.deepEqual(plan.tools?.map(({ server, would }) => [server, would]), [
      ...[["one", "compare"], ["two", "withdraw"], ["three", "learn"]],
    ]);
    assert.ok(plan.tools?.every(({ known, would }) => (known > 0) === (would !== "learn")));
    const told: RunEvent[] = [];
    const resumed = await system.resume(request(runId), { onEvent: (event) => told.push(event) });
    assert.equal((await resumed.done).exit_code, 0);
    const changed = told.flatMap((event) => event.type === "mount.changed" ? [event] : []);
    assert.deepEqual(changed.map(({ server, added }) => [server, added]), [["two", []]]);
    assert.ok(changed[0]?.removed.includes("pay"));
  });
});

Deno.test("of a run at work a plan says that its resume is refused, and calls nothing of it a crash", async () => {
  await inPlace(async ({ system, folder, agent, run, request }) => {
    const server = `command: "${Deno.execPath()}", args: ["run", "-A", "${LEDGER}", "${folder}/l"]`;
    const call = "calls: [{ tool: slow, input: { ms: 60000 } }]";
    agent("payer", `mcp: { servers: { ledger: { ${server} } } }\n`, `turns: [{ ${call} }]\n`);
    const { done, runId } = await run("payer");
    const started = Promise.withResolvers<void>();
    const onEvent = (event: RunEvent) => event.type === "call.started" && started.resolve();
    await system.attach(runId, "start", { onEvent });
    await started.promise;
    const plan = await system.planResume(request(runId));
    assert.deepEqual([plan.exit_code, plan.settle, plan.send], [2, [], []]);
    assert.equal(plan.error?.message, `The run is at work in process ${Deno.pid}`);
    await assert.rejects(
      system.resume(request(runId), silent),
      (thrown: SysError) => thrown.exitCode === plan.exit_code,
    );
    await system.signal(runId, "KILL");
    await done;
  });
});

Deno.test("a report counts calls that failed, and what is told of a fork begins with its source", async () => {
  await inPlace(async ({ system, agent, run, request }) => {
    agent("talker", "", TALKER);
    const { done, runId } = await run("talker");
    assert.equal((await done).failed_calls, 1);
    assert.equal((await system.report(runId))?.failed_calls, 1);
    const fork = await system.resume(request(runId, { fork: true, fromStep: 0 }), silent);
    await fork.done;
    const events: RunEvent[] = [];
    for await (const event of system.pastEvents(fork.runId)) events.push(event);
    const [started] = events;
    assert.equal(started?.type === "run.started" && started.forked_from, runId);
  });
});

Deno.test("a plan knows what is wrong with the surroundings: a variable, a price", async () => {
  await inPlace(async ({ system, folder, agent, run, request }) => {
    const server = `command: "${Deno.execPath()}", args: ["run", "-A", "${LEDGER}", "${folder}/l"]`;
    const env = 'env: { A: "${PLAN_TEST:-}" }';
    agent("payer", `mcp: { servers: { ledger: { ${server}, ${env} } } }\n`, TALKER);
    const { done, runId } = await run("payer");
    await system.signal(runId, "TERM");
    await done;
    const asks: Partial<ResumeRequest>[] = [{}, { stored: true, budget: { cost_usd: 1 } }];
    agent(
      "payer",
      `mcp: { servers: { ledger: { ${server}, ${env.replace(":-", "")} } } }\n`,
      TALKER,
    );
    for (const changes of asks) {
      const plan = await system.planResume(request(runId, changes));
      const thrown = await system.resume(request(runId, changes), silent).then(
        () => undefined,
        (error: SysError) => error,
      );
      assert.notEqual(thrown, undefined, JSON.stringify(changes));
      assert.deepEqual(
        [plan.exit_code, plan.error?.code, plan.error?.message],
        [thrown?.exitCode, thrown?.code, thrown?.message],
      );
    }
  });
});
