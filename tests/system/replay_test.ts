/** Ended runs gone through again from their records: the same without network or servers, and a difference where something is not as it was. */
import assert from "node:assert/strict";
import { systemClock } from "../../src/base/clock.ts";
import { disk } from "../../src/base/disk.ts";
import type { ResumeRequest } from "../../src/base/operations.ts";
import type { Entry, EntryBody } from "../../src/journal/entry.ts";
import { createJournal, readRun } from "../../src/journal/mod.ts";
import { ledgerMount, manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

const SCRIPTED = "{ provider: scripted, script: script.yaml }";
type Call = { tool: string; input: object; offered?: boolean };

function put(home: ModelHome, turns: object[], more = ""): void {
  home.write("script.yaml", JSON.stringify({ turns, final: "Nothing more." }));
  home.write("agent.yaml", manifestOf(SCRIPTED, more));
}

const calls = (...all: Call[]) => ({ calls: all });
const pay = (note: string): Call => ({ tool: "pay", input: { note } });

/** The runs of this file: each ends, and is the same again. */
const RUNS: { [what: string]: { turns: object[]; more?(home: ModelHome): string } } = {
  "an answer alone": { turns: [{ text: "Hello." }] },
  "one call after another": {
    turns: [calls(pay("a")), calls(pay("b")), { text: "done" }],
    more: (home) => ledgerMount(home.folder),
  },
  "calls at once": {
    turns: [calls(pay("a"), { tool: "peek", input: {} }, pay("c")), { text: "done" }],
    more: (home) => ledgerMount(home.folder),
  },
  "a call that fails and one that is refused": {
    turns: [calls({ tool: "fail", input: {} }, { tool: "pay", input: { note: 1 } }), { text: "x" }],
    more: (home) => ledgerMount(home.folder),
  },
  "a tool that there is not": {
    turns: [calls({ tool: "nothing", input: {}, offered: false }), { text: "done" }],
  },
  "built-in tools": {
    turns: [
      calls({ tool: "Write", input: { path: "a", content: "b" } }),
      calls({ tool: "Read", input: { path: "a" } }),
      { text: "done" },
    ],
    more: () => "tools: [Read, Write]\n",
  },
  "a result that was cut, read in pieces": {
    turns: [
      calls({ tool: "big", input: { bytes: 20_000 } }),
      calls({ tool: "peek", input: {} }),
      { text: "done" },
    ],
    more: (home) =>
      ledgerMount(home.folder).replace(
        "startup_timeout",
        "max_output_tokens: 100\n      startup_timeout",
      ),
  },
  "a server that isn't there and isn't required": {
    turns: [{ text: "done" }],
    more: () => "mcp: { servers: { no: { command: no-such-program, required: false } } }\n",
  },
};

for (const [what, { turns, more }] of Object.entries(RUNS)) {
  Deno.test(`a run with ${what} comes out the same`, async () => {
    await withModelHome({}, async (home) => {
      put(home, turns, more?.(home));
      const { run_id, exit_code, turns: done } = await home.run("./agent.yaml");
      assert.equal(exit_code, 0);
      const replayed = await home.system.replay(run_id);
      assert.deepEqual(replayed.differences, []);
      assert.equal(replayed.requests, done);
      assert.ok(replayed.same);
    });
  });
}

function resumeOf(home: ModelHome, run: string, more: Partial<ResumeRequest>): ResumeRequest {
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const off = { stored: false, acceptCut: false, fork: false, yes: false, trust: false };
  return { run, client, unknown: [], ...off, ...more };
}

Deno.test("a run that met its limit and was resumed comes out the same, and one with a new intent", async () => {
  await withModelHome({}, async (home) => {
    const turns = [calls(pay("a")), calls(pay("b")), { text: "done" }];
    put(home, turns, `${ledgerMount(home.folder)}budget: { turns: 1 }\n`);
    const { run_id, reason } = await home.run("./agent.yaml");
    assert.equal(reason, "limit");
    await assert.rejects(home.system.replay(run_id), /has not ended \(it is suspended\)/);
    const observer = { onEvent: () => {} };
    const again = await home.system.resume(
      resumeOf(home, run_id, { budget: { turns: 20 } }),
      observer,
    );
    assert.equal((await again.done).exit_code, 0);
    assert.ok((await home.system.replay(run_id)).same);
    const more = await home.system.resume(
      resumeOf(home, run_id, { intent: "And more", budget: { turns: 20 } }),
      observer,
    );
    assert.equal((await more.done).exit_code, 0);
    const replayed = await home.system.replay(run_id);
    assert.deepEqual(replayed.differences, []);
    assert.deepEqual([replayed.requests, replayed.calls], [4, 2]);
  });
});

Deno.test("what is not as it was is told with its record", async () => {
  await withModelHome({}, async (home) => {
    put(home, [calls(pay("a")), { text: "done" }], ledgerMount(home.folder));
    const { run_id } = await home.run("./agent.yaml");
    const folder = `${home.state}/runs/${run_id}`;
    const changed: { [what: string]: (entry: Entry) => Partial<EntryBody> | undefined } = {
      request: (entry) => entry.type === "model.request" ? { request_sha256: "0" } : undefined,
      call: (entry) => entry.type === "call.intent" ? { input_sha256: "0" } : undefined,
      end: (entry) => entry.type === "run.exited" ? { result: "other" } : undefined,
    };
    for (const [what, change] of Object.entries(changed)) {
      const entries: Entry[] = [];
      await readRun(disk, folder, (entry) => void entries.push(entry));
      Deno.renameSync(`${folder}/journal.jsonl`, `${folder}/journal.kept`);
      const journal = await createJournal(disk, folder, {
        clock: systemClock,
        osPid: Deno.pid,
        instance: "test",
      });
      for (const entry of entries) {
        const { v: _v, seq: _seq, ts: _ts, synced: _synced, ...body } = entry;
        journal.append({ ...body, ...change(entry) } as EntryBody);
      }
      await journal.close();
      const { same, differences } = await home.system.replay(run_id);
      assert.ok(!same);
      assert.deepEqual([...new Set(differences.map((each) => each.what))], [what]);
      Deno.renameSync(`${folder}/journal.kept`, `${folder}/journal.jsonl`);
    }
    assert.ok((await home.system.replay(run_id)).same);
  });
});
