/** The workflows inside the program: each runs offline, in any folder, with what is really there. */
import assert from "node:assert/strict";
import type { RunEvent } from "../../src/base/operations.ts";
import { type ModelHome, withModelHome } from "./model_home.ts";
import { writeExecutable } from "../doubles/executable_file.ts";

async function run(home: ModelHome, manifest: string, parameters: { [name: string]: string } = {}) {
  const calls: string[] = [];
  const onEvent = (event: RunEvent) => {
    if (event.type === "call.started") calls.push(event.call);
  };
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const request = { manifest, intent: "", trust: false, client, parameters };
  const handle = await home.system.run(request, { onEvent });
  const report = await handle.done;
  assert.equal(report.exit_code, 0, JSON.stringify(report.error));
  return { ...report, calls };
}

Deno.test("survey reads the files of the folder one by one and reports them", async () => {
  await withModelHome({}, async (home) => {
    home.write("one.txt", "First of all\n");
    home.write("two.md", "# Second\n");
    const { result, calls } = await run(home, "survey", { goal: "What is it?" });
    assert.deepEqual(calls, ["n.list", "n.read.0", "n.read.1", "n.report"]);
    assert.match(result, /What is it\?/);
    assert.match(result, /one\.txt:.*First of all.*two\.md:.*# Second/);
  });
});

Deno.test("audit has three look at once, then one judge, and advises where it is needed", async () => {
  await withModelHome({}, async (home) => {
    home.write("app.conf", "password = correct-horse\n");
    const { result, calls } = await run(home, "audit");
    assert.deepEqual(calls.slice(0, 3).sort(), ["n.leftovers", "n.secrets", "n.shape"]);
    assert.deepEqual(calls.slice(3), ["n.verdict", "n.advice"]);
    assert.match(result, /^Verdict: look-again\n/);
    assert.match(result, /app\.conf:1:password = correct-horse/);
  });
});

Deno.test("release-notes takes the commits, and writes once more only what lacks something", async () => {
  await withModelHome({}, async (home) => {
    Deno.mkdirSync(`${home.folder}/bin`);
    writeExecutable(`${home.folder}/bin/git`, "#!/bin/sh\necho '- a change'\n");
    home.env["PATH"] = `${home.folder}/bin:${home.env["PATH"]}`;
    await assert.rejects(run(home, "release-notes"), /Parameter "version" \(Version that/);
    const { result, calls } = await run(home, "release-notes", { version: "1.2" });
    assert.deepEqual(calls, ["n.commits", "n.draft", "n.check"]);
    assert.equal(result, "Write the notes of version 1.2 for users. The commits:\n\n- a change\n");
    const view = await home.system.graph({ of: "release-notes", client: { cwd: "/", env: {} } });
    assert.deepEqual(view.nodes.map(({ wave }) => wave), [1, 2, 3, 4]);
  });
});
