/** Ended runs played again with one side in earnest: a regression test of a model, a prompt or a server out of any run. */
import assert from "node:assert/strict";
import type { RunReport } from "../../src/base/operations.ts";
import { ledgerMount, manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

const SCRIPTED = "{ provider: scripted, script: script.yaml }";
type Call = { tool: string; input: object };
const calls = (...all: Call[]) => ({ calls: all });
const pay = (note: string): Call => ({ tool: "pay", input: { note } });
const peek: Call = { tool: "peek", input: {} };

function put(home: ModelHome, turns: object[], more: string): void {
  home.write("script.yaml", JSON.stringify({ turns, final: "Nothing more." }));
  home.write("agent.yaml", manifestOf(SCRIPTED, more));
}

async function play(
  home: ModelHome,
  run: string,
  live: "model" | "mcp",
  yes = false,
): Promise<RunReport> {
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const handle = await home.system.run(
    { manifest: "", intent: "", trust: false, client, replay: { run, live, yes } },
    { onEvent: () => {} },
  );
  return await handle.done;
}

function ledger(home: ModelHome): string[] {
  try {
    return Deno.readTextFileSync(`${home.folder}/ledger`).trim().split("\n");
  } catch {
    return [];
  }
}

Deno.test("with a live model the tools answer as they did: nothing is done again, no server started", async () => {
  await withModelHome({}, async (home) => {
    put(home, [calls(pay("a"), peek), calls(pay("b")), { text: "done" }], ledgerMount(home.folder));
    const { run_id } = await home.run("./agent.yaml");
    assert.equal(ledger(home).length, 2);
    const again = await play(home, run_id, "model");
    assert.equal(again.exit_code, 0, JSON.stringify(again.error));
    assert.equal(ledger(home).length, 2);
    const compared = await home.system.compareReplay(again.run_id);
    assert.deepEqual(compared.differences, []);
    assert.deepEqual([compared.run_id, compared.calls], [run_id, 3]);
    await assert.rejects(
      home.system.resume({
        run: again.run_id,
        client: { cwd: home.folder, env: home.env, interactive: false },
        unknown: [],
        ...{ stored: false, acceptCut: false, fork: false, yes: false, trust: false },
        intent: "More",
      }, { onEvent: () => {} }),
      /plays another one again/,
    );
  });
});

Deno.test("with live servers the model answers as it did; what acts is done again only with consent", async () => {
  await withModelHome({}, async (home) => {
    put(home, [calls(peek), { text: "done" }], ledgerMount(home.folder));
    const { run_id } = await home.run("./agent.yaml");
    const same = await play(home, run_id, "mcp");
    assert.deepEqual((await home.system.compareReplay(same.run_id)).differences, []);
    Deno.writeTextFileSync(`${home.folder}/ledger`, "pay other -\n");
    const other = await play(home, run_id, "mcp");
    assert.deepEqual((await home.system.compareReplay(other.run_id)).differences, [
      {
        what: "call",
        message: "call t1.1 of mcp__world__peek is answered otherwise now (call t1.1)",
      },
    ]);
    put(home, [calls(pay("a")), { text: "done" }], ledgerMount(home.folder));
    const paid = await home.run("./agent.yaml");
    const before = ledger(home).length;
    await assert.rejects(
      play(home, paid.run_id, "mcp"),
      /It would do again what this run did: t1\.1/,
    );
    assert.equal(ledger(home).length, before);
    assert.equal((await play(home, paid.run_id, "mcp", true)).exit_code, 0);
    assert.equal(ledger(home).length, before + 1);
  });
});

Deno.test("built-in tools are played too, and a run that hasn't ended can't be", async () => {
  await withModelHome({}, async (home) => {
    put(
      home,
      [calls({ tool: "Write", input: { path: "made", content: "x" } }), { text: "done" }],
      "tools: [Write]\n",
    );
    const { run_id } = await home.run("./agent.yaml");
    Deno.removeSync(`${home.folder}/made`);
    const again = await play(home, run_id, "model");
    assert.deepEqual((await home.system.compareReplay(again.run_id)).differences, []);
    assert.throws(() => Deno.statSync(`${home.folder}/made`), Deno.errors.NotFound);
    await assert.rejects(home.system.compareReplay(run_id), /played no other one/);
    put(home, [calls(peek), { text: "x" }], `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    const halted = await home.run("./agent.yaml");
    await assert.rejects(play(home, halted.run_id, "model"), /has not ended/);
  });
});
