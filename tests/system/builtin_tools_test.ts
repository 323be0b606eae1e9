/** The built-in tools in whole runs: granted by the manifest, called through the gate, journaled as any other. */
import assert from "node:assert/strict";
import { manifestOf, type ModelHome, withModelHome } from "./model_home.ts";

const SCRIPTED = "{ provider: scripted, script: script.yaml }";

function script(
  home: ModelHome,
  calls: { tool: string; input: object; offered?: boolean }[],
): void {
  const turns = [...calls.map((call) => ({ calls: [call] })), { text: "done" }];
  home.write("script.yaml", JSON.stringify({ turns }));
}

/** Results of the run's calls, as its journal has them. */
function results(home: ModelHome): { call: string; outcome: string; text: string }[] {
  return home.left().split("\n").filter((line) => line.includes('"type":"call.result"'))
    .map((line) => JSON.parse(line))
    .map(({ call, outcome, content }) => ({ call, outcome, text: content[0]?.text ?? "" }));
}

Deno.test("an agent works with the tools that it was granted, in the run's folder", async () => {
  await withModelHome({ SOME_KEY: "a-key-of-the-client" }, async (home) => {
    script(home, [
      { tool: "Write", input: { path: "notes/a.txt", content: "one\ntwo\n" } },
      { tool: "Edit", input: { path: "notes/a.txt", old_text: "two", new_text: "three" } },
      { tool: "Read", input: { path: "notes/a.txt" } },
      { tool: "Glob", input: { pattern: "**/*.txt" } },
      { tool: "Grep", input: { pattern: "thr.e", folder: "notes" } },
      { tool: "Bash", input: { command: "cat notes/a.txt; echo key=$SOME_KEY" } },
    ]);
    const granted = "tools: [Read, Write, Edit, Glob, Grep, Bash]\n";
    home.write("agent.yaml", manifestOf(SCRIPTED, granted));
    const report = await home.run("./agent.yaml");
    assert.equal(report.exit_code, 0, JSON.stringify(report.error));
    assert.deepEqual(results(home).map(({ outcome, text }) => [outcome, text]), [
      ["ok", "Made notes/a.txt (8 characters)"],
      ["ok", "Edited notes/a.txt (1 place)"],
      ["ok", "     1\tone\n     2\tthree"],
      ["ok", "notes/a.txt"],
      ["ok", "notes/a.txt:2:three"],
      ["ok", "one\nthree\nkey="],
    ]);
    assert.match(home.left(), /"device":"\/dev\/fs\/tools\/Write","effect":"idempotent"/);
    assert.match(home.left(), /"device":"\/dev\/shell\/tools\/Bash","effect":"destructive"/);
  });
});

Deno.test("a tool that wasn't granted is not there, whatever the model says", async () => {
  await withModelHome({}, async (home) => {
    script(home, [
      { tool: "Bash", input: { command: "echo hi > made" }, offered: false },
      { tool: "Read", input: { path: "../../etc/passwd" } },
    ]);
    home.write("agent.yaml", manifestOf(SCRIPTED, "tools: [Read]\n"));
    const report = await home.run("./agent.yaml");
    assert.equal(report.exit_code, 0, JSON.stringify(report.error));
    const [bash, read] = results(home);
    assert.equal(bash?.outcome, "error");
    assert.match(bash?.text ?? "", /NOT_FOUND.*no tool named "Bash"/);
    assert.equal(read?.outcome, "error");
    assert.match(read?.text ?? "", /PERMISSION.*leads out of the working folder|NOT_FOUND/);
    assert.throws(() => Deno.statSync(`${home.folder}/made`), Deno.errors.NotFound);
  });
});
