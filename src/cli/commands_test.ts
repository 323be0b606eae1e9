import assert from "node:assert/strict";
import { allCommands, commandsFor } from "./commands.ts";

/** Names of the commands that are loaded for a command line. */
async function loaded(...args: string[]): Promise<string[]> {
  return (await commandsFor(args)).map(({ name }) => name);
}

Deno.test("a command line loads the commands that it can mean, and no others", async () => {
  assert.deepEqual(await loaded("ps", "-a"), ["ps"]);
  assert.deepEqual(await loaded("--json", "--home", "run", "ps"), ["ps"]);
  assert.deepEqual(await loaded("run", "agents/demo", "ps", "and", "kill"), ["run"]);
  assert.deepEqual(await loaded("check", "agents/demo"), ["check"]);
  assert.deepEqual(await loaded("check", "mcp", "a.yaml"), ["check", "check mcp"]);
  assert.deepEqual(await loaded("mcp", "--json", "logs", "1-files"), ["mcp logs"]);
});

Deno.test("a command line that means none loads all, to say what there is", async () => {
  const all = (await allCommands()).length;
  for (const args of [[], ["--help"], ["pss"], ["mcp"], ["mcp", "lst"]]) {
    assert.equal((await loaded(...args)).length, all, args.join(" "));
  }
});

Deno.test("each command has the name under which the table lists it", async () => {
  for (const { name } of await allCommands()) {
    assert.ok((await loaded(...name.split(" "))).includes(name), name);
  }
});
