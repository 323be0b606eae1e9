import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { parseArguments, type Parsed, wantsJson } from "./arguments.ts";
import { allCommands } from "./commands.ts";

const ALL_COMMANDS = await allCommands();

function parse(...args: string[]): Parsed {
  return parseArguments(args, ALL_COMMANDS);
}

/** Message and hint of the usage error. */
function refused(...args: string[]): string {
  try {
    parse(...args);
  } catch (thrown) {
    assert.ok(thrown instanceof SysError);
    assert.equal(thrown.code, "INVALID");
    assert.equal(thrown.exitCode, 2);
    return `${thrown.message}: ${thrown.hint}`;
  }
  assert.fail(`"${args.join(" ")}" was accepted`);
}

Deno.test("global flags are taken anywhere, before the command and after its words", () => {
  const lines = [
    ["--json", "--home", "/h", "-v", "run", "demo", "look", "here"],
    ["run", "demo", "look", "--json", "here", "--home=/h", "--verbose"],
  ];
  for (const line of lines) {
    const { command, invocation, globals } = parse(...line);
    assert.equal(command?.name, "run");
    assert.deepEqual(invocation.words, ["demo", "look", "here"]);
    assert.deepEqual(globals, { json: true, quiet: false, verbose: true, help: false, home: "/h" });
    assert.equal(invocation.values.size, 0);
  }
});

Deno.test("short switches may be joined, and two-word commands are found", () => {
  const { command, invocation, globals } = parse("ps", "-aq");
  assert.equal(command?.name, "ps");
  assert.ok(invocation.values.has("all"));
  assert.ok(globals.quiet);
  assert.equal(parse("mcp", "logs", "1-files").command?.name, "mcp logs");
  assert.equal(parse("mcp", "--json", "logs", "1-files").command?.name, "mcp logs");
});

Deno.test("values come joined or apart, may begin with a dash, and repeat only where they may", () => {
  const { invocation } = parse("run", "demo", "--budget=turns=3", "--budget", "tokens=5");
  assert.deepEqual(invocation.values.get("budget"), ["turns=3", "tokens=5"]);
  assert.deepEqual(parse("run", "x", "--model", "-m").invocation.values.get("model"), ["-m"]);
  assert.deepEqual(parse("run", "x", "--model=").invocation.values.get("model"), [""]);
  assert.equal(
    refused("run", "x", "--model", "a", "--model=b"),
    'Flag "--model" was given twice: give it once',
  );
});

Deno.test("after -- everything is words", () => {
  const { invocation, globals } = parse("run", "demo", "--", "--json", "-q");
  assert.deepEqual(invocation.words, ["demo", "--json", "-q"]);
  assert.equal(globals.json, false);
  assert.equal(wantsJson(["run", "demo", "--", "--json"]), false);
  assert.equal(wantsJson(["ps", "--json", "--nonsense"]), true);
});

Deno.test("a mistake names the nearest thing that exists", () => {
  assert.equal(refused("rum", "demo"), 'Unknown command "rum": did you mean rnix run?');
  assert.equal(
    refused("mcp", "log", "x"),
    'Unknown command "mcp log": did you mean rnix mcp logs?',
  );
  assert.match(
    refused("daemon", "foo"),
    /^Unknown command "daemon foo": one of: rnix daemon run, rnix daemon start,/,
    "what the second word could be, not what resembles both",
  );
  assert.equal(refused("dameon"), 'Unknown command "dameon": did you mean rnix daemon?');
  assert.equal(refused("xyzzy"), 'Unknown command "xyzzy": see rnix --help');
  assert.equal(
    refused("run", "x", "--modle", "m"),
    'Unknown flag "--modle" for "rnix run": did you mean --model?',
  );
  assert.doesNotMatch(refused("run", "x", "--nope"), /did you mean/, "--home is far from it");
  assert.equal(
    refused("run", "x", "-1"),
    'Unknown flag "-1" for "rnix run": put -- before words that begin with a dash, or see rnix run --help',
  );
  assert.equal(
    refused("--stream", "run", "x"),
    'Unknown flag "--stream" for "rnix": flags of a command go after its name',
  );
  assert.equal(refused("--xyzzy"), 'Unknown flag "--xyzzy" for "rnix": see rnix --help');
});

Deno.test("flags of commands that don't exist yet are refused", () => {
  for (const flag of ["--accept-changes", "--all"]) {
    assert.match(refused("run", "demo", flag), /^Unknown flag/, flag);
  }
});

Deno.test("missing and surplus words and values are told", () => {
  assert.equal(refused("run"), 'Command "run" needs <manifest>: see rnix run --help');
  assert.equal(refused("ps", "3"), `Command "ps" doesn't take "3": see rnix ps --help`);
  assert.match(
    refused("mcp"),
    /^Command "mcp" needs a second word: one of: rnix mcp list, rnix mcp test\b/,
  );
  assert.equal(
    refused("run", "x", "--model"),
    'Flag "--model" needs a value: write --model MODEL',
  );
  assert.equal(
    refused("ps", "--all=yes"),
    'Flag "--all" takes no value, but got "yes": write --all',
  );
  assert.equal(refused("ps", "-qv"), 'Flags "-q" and "-v" exclude each other: give one of them');
  assert.equal(refused("ps", "--home="), 'Flag "--home" needs a folder: write --home DIR');
});

Deno.test("help asks for nothing else", () => {
  assert.ok(parse("run", "--help").globals.help);
  assert.ok(parse("mcp", "-h").globals.help);
  assert.equal(parse().command, undefined);
});

Deno.test("of a command and a longer one that begins with it, the longer one is meant", () => {
  assert.equal(parse("check").command?.name, "check");
  assert.equal(parse("check", "mcp").command?.name, "check mcp");
  const { command, invocation } = parse("check", "--json", "mcp", "mcp", "demo");
  assert.equal(command?.name, "check mcp");
  assert.deepEqual(invocation.words, ["mcp", "demo"]);
  const literal = parse("check", "--", "mcp");
  assert.equal(literal.command?.name, "check");
  assert.deepEqual(literal.invocation.words, ["mcp"]);
  const other = parse("check", "demo", "mcp");
  assert.equal(other.command?.name, "check");
  assert.deepEqual(other.invocation.words, ["demo", "mcp"]);
});
