import assert from "node:assert/strict";
import { FakeSystem, row } from "../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../tests/doubles/fake_world.ts";
import type { WordKind } from "./command.ts";
import { complete } from "./complete.ts";
import { allCommands } from "./commands.ts";

const ALL_COMMANDS = await allCommands();

const asked: WordKind[] = [];

/** Completions of a command line whose last word is being written. */
async function at(...words: string[]): Promise<{ words: string[]; files: boolean }> {
  asked.length = 0;
  const { candidates, files } = await complete(words, ALL_COMMANDS, (kind) => {
    asked.push(kind);
    return Promise.resolve([{ word: `some-${kind}`, about: "" }]);
  });
  return { words: candidates.map(({ word }) => word), files };
}

Deno.test("commands are completed word by word, hidden ones aren't", async () => {
  const first = (await at("")).words;
  for (const word of ["run", "ps", "mcp", "daemon", "help"]) assert.ok(first.includes(word), word);
  assert.equal(new Set(first).size, first.length);
  assert.ok(!first.includes("complete"));
  assert.deepEqual((await at("da")).words, ["daemon"]);
  assert.deepEqual((await at("daemon", "st")).words, ["start", "stop", "status"]);
  assert.deepEqual((await at("--json", "mcp", "")).words, [
    "list",
    "test",
    "connect",
    "logs",
    "import",
  ]);
  assert.deepEqual((await at("help", "jour")).words, ["journal"]);
  assert.deepEqual((await at("help", "daemon", "st")).words, ["start", "stop", "status"]);
  assert.deepEqual((await at("nonsense", "")).words, []);
});

Deno.test("flags are those of the command and of all, after -- there are none", async () => {
  const { words } = await at("logs", "--");
  assert.deepEqual(words.slice(0, 3), ["--follow", "--stream", "--json"]);
  assert.deepEqual((await at("resume", "--acc")).words, ["--accept-cut"]);
  assert.deepEqual((await at("ps", "--", "--")).words, []);
});

Deno.test("a flag's value is completed from its choices, in each way to write it", async () => {
  assert.deepEqual((await at("attach", "--from", "")).words, ["start", "now"]);
  assert.deepEqual((await at("attach", "--from", "n")).words, ["now"]);
  assert.deepEqual((await at("attach", "--from=n")).words, ["--from=now"]);
  assert.deepEqual((await at("attach", "--from", "=", "n")).words, ["now"]);
  assert.deepEqual((await at("kill", "-s", "K")).words, ["KILL"]);
  assert.deepEqual((await at("run", "--model", "x")).words, []);
  assert.deepEqual(asked, []);
});

Deno.test("words are completed by what they stand for, asked for only then", async () => {
  assert.deepEqual(await at("run", ""), { words: ["some-agent"], files: true });
  assert.deepEqual(await at("run", "demo", ""), { words: [], files: false });
  assert.deepEqual((await at("resume", "")).words, ["some-run"]);
  assert.deepEqual((await at("pause", "1", "2", "")).words, ["some-live-run"]);
  assert.deepEqual((await at("kill", "-s", "INT", "")).words, ["some-run"]);
  assert.deepEqual((await at("mcp", "logs", "")).words, ["some-mount"]);
  assert.deepEqual(await at("mcp", "import", ""), { words: [], files: true });
  await at("daemon", "");
  assert.deepEqual(asked, []);
});

Deno.test("after a command that a longer one begins with, both go on", async () => {
  assert.deepEqual(await at("check", ""), { words: ["mcp", "some-agent"], files: true });
  assert.deepEqual(await at("check", "mcp", ""), { words: ["some-agent"], files: true });
  assert.deepEqual((await at("check", "mc")).words, ["mcp"]);
});

Deno.test("names that can't be had are no names", async () => {
  const { candidates } = await complete(["attach", ""], ALL_COMMANDS, () => Promise.reject());
  assert.deepEqual(candidates, []);
});

Deno.test("the hidden command gives runs by pid and short id, the newest first", async () => {
  const system = new FakeSystem();
  system.rows = [row({ pid: 3, state: "dead" }), row({ pid: 4, intent: "a\tb" })];
  const world = new FakeWorld({ system });
  assert.equal(await world.run("complete", "--", "logs", ""), 0);
  assert.equal(
    world.out.text,
    `4\treviewer (running) a b
0f3a9c2e\treviewer (running) a b
3\treviewer (dead) review the change
0f3a9c2e\treviewer (dead) review the change
`,
  );
  const live = new FakeWorld({ system });
  await live.run("complete", "--", "attach", "4");
  assert.equal(live.out.text, "4\treviewer (running) a b\n");
  assert.deepEqual(system.asked, ["processes all=true", "processes all=false"]);
});

Deno.test("agents are those that can be run by name, and files", async () => {
  const world = new FakeWorld();
  await world.run("complete", "--", "run", "de");
  assert.equal(world.out.text, "demo\tembedded agent\n:files\n");
});

Deno.test("completions print a script for each shell, that of SHELL by default", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const world = new FakeWorld();
    assert.equal(await world.run("completions", shell), 0);
    assert.ok(world.out.text.includes(`rnix completions ${shell}`), shell);
    assert.match(world.out.text, /complete -- /);
  }
  const own = new FakeWorld({ env: { SHELL: "/usr/bin/fish" } });
  assert.equal(await own.run("completions"), 0);
  assert.match(own.out.text, /fish/);
  const none = new FakeWorld();
  assert.equal(await none.run("completions", "tcsh"), 2);
  assert.match(none.err.text, /one of: bash, zsh, fish/);
  const unnamed = new FakeWorld({ env: {} });
  assert.equal(await unnamed.run("completions"), 2);
  assert.match(unnamed.err.text, /No shell is named, and SHELL is not set/);
});
