import assert from "node:assert/strict";
import type { Command } from "./command.ts";
import { commandHelp, commandTable, groupHelp, overview, synopsis } from "./help.ts";
import { allCommands } from "./commands.ts";

const ALL_COMMANDS = await allCommands();

const COPY: Command = {
  name: "file copy",
  summary: "Copy a file",
  positionals: [{ name: "from" }, { name: "to", optional: true }, {
    name: "more",
    optional: true,
    rest: true,
  }],
  flags: [
    { name: "force", short: "f", summary: "Overwrite" },
    { name: "mode", value: "MODE", summary: "Permissions" },
  ],
  details: "Copies bytes.",
  run: () => Promise.resolve({ exitCode: 0 }),
};

Deno.test("a command's help shows its words, details and flags", () => {
  assert.equal(synopsis(COPY), "file copy [flags] <from> [to] [more…]");
  assert.equal(
    commandHelp(COPY),
    `Copy a file

Usage: rnix file copy [flags] <from> [to] [more…]

Copies bytes.

Flags:
  -f, --force      Overwrite
      --mode MODE  Permissions

Flags of every command:
      --json      One JSON envelope on stdout
  -q, --quiet     Results and errors only; \`ps -q\` prints pids
  -v, --verbose   Everything that happens
      --home DIR  Keep configuration and state in DIR
  -h, --help      Help for a command
`,
  );
});

Deno.test("no help is wider than 80 columns, and the overview names every exit code", () => {
  const text = overview(ALL_COMMANDS);
  for (const help of [text, ...ALL_COMMANDS.map(commandHelp)]) {
    for (const line of help.split("\n")) assert.ok(line.length <= 80, line);
  }
  for (const code of [0, 1, 2, 3, 5, 6, 7, 8, 9]) assert.match(text, new RegExp(`\\b${code} `));
});

Deno.test("every command that takes a run says in the same words how one is named", () => {
  const taking = ALL_COMMANDS.filter(({ positionals }) =>
    positionals.some(({ name }) => name === "run")
  );
  assert.ok(taking.length >= 10);
  for (const command of taking) {
    assert.match(commandHelp(command), /\n\n<run> is a pid, a run id, or 4 or more characters/);
  }
});

Deno.test("a group lists its own commands only", () => {
  assert.equal(
    groupHelp("file", [COPY, ...ALL_COMMANDS]),
    "Commands:\n  file copy [flags] <from> [to] [more…]  Copy a file\n",
  );
});

Deno.test("the table of the README has a row per command", () => {
  assert.equal(
    commandTable([COPY]),
    "| Command | |\n| --- | --- |\n| `rnix file copy [flags] <from> [to] [more…]` | Copy a file |\n",
  );
});

Deno.test("names of flags and commands are unique, and no flag hides a global one", () => {
  const names = ALL_COMMANDS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const globals = ["json", "quiet", "verbose", "home", "help", "q", "v", "h"];
  for (const command of ALL_COMMANDS) {
    const flags = command.flags.flatMap(({ name, short }) => short ? [name, short] : [name]);
    assert.equal(new Set([...flags, ...globals]).size, flags.length + globals.length, command.name);
    const rest = command.positionals.findIndex((each) => each.rest);
    assert.ok(rest < 0 || rest === command.positionals.length - 1, command.name);
  }
});
