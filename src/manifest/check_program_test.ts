import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import { checkProgram, interpreterOf } from "./check_program.ts";

/** A folder with programs in it, given by name: the text, or where a link leads. */
async function withPrograms(
  programs: { [name: string]: string | { link: string } },
  work: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-check-" }));
  try {
    for (const [name, content] of Object.entries(programs)) {
      const path = `${folder}/${name}`;
      if (typeof content !== "string") Deno.symlinkSync(content.link, path);
      else Deno.writeTextFileSync(path, content, { mode: 0o755 });
    }
    await work(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

const look = (command: string, path: string) =>
  checkProgram({ storage: disk, command, shown: command, cwd: "/", path });

Deno.test("a program is told with its place, a link beside its target by what it leads to", async () => {
  await withPrograms({
    "python3": "#!/bin/sh\n",
    "python": { link: "python3" },
    "sh-elsewhere": { link: "/bin/sh" },
  }, async (folder) => {
    assert.deepEqual(await look("python3", folder), { path: `${folder}/python3` });
    assert.deepEqual(await look("python", folder), { path: `${folder}/python3` });
    assert.deepEqual(await look("sh-elsewhere", folder), { path: `${folder}/sh-elsewhere` });
    assert.deepEqual(await look(`${folder}/python`, "/none"), { path: `${folder}/python3` });
  });
});

Deno.test("[D25] a missing program is told with the PATH that was searched", async () => {
  assert.deepEqual(await look("pg-mcp", "/nowhere/bin:/nowhere/else"), {
    fault: {
      message: "command 'pg-mcp' not in PATH",
      hint:
        'Command "pg-mcp" not found in PATH (searched /nowhere/bin, /nowhere/else). Install it, ' +
        "or give its whole path; PATH is that of the shell that started the run",
    },
  });
});

Deno.test("[D25] a script whose interpreter is missing is told apart from a missing program", async () => {
  await withPrograms({
    "npx": "#!/usr/bin/env node\n",
    "tool": "#!/nowhere/perl -w\n",
    "whole": "#!/usr/bin/env -S python -u\n",
    "python": "#!/bin/sh\n",
  }, async (folder) => {
    const lacking = await look("npx", folder);
    assert.ok("fault" in lacking);
    assert.equal(lacking.fault.message, "command 'npx' needs 'node', which is not in PATH");
    assert.match(
      lacking.fault.hint ?? "",
      new RegExp(`first line of ${folder}/npx .*\\(searched `),
    );
    const perl = await look("tool", folder);
    assert.ok("fault" in perl);
    assert.equal(perl.fault.message, "command 'tool' needs '/nowhere/perl', which does not exist");
    assert.deepEqual(await look("whole", folder), { path: `${folder}/whole` });
  });
});

Deno.test("[B07] a command line in one string is told how to be written", async () => {
  const check = await look("npx -y some-server", "/bin");
  assert.ok("fault" in check);
  assert.match(check.fault.hint ?? "", /command: npx and args: \["-y","some-server"\]/);
});

Deno.test("a file that may not be run, a folder and a path that leads nowhere are told", async () => {
  await withPrograms({ "plain": "text" }, async (folder) => {
    Deno.chmodSync(`${folder}/plain`, 0o644);
    Deno.mkdirSync(`${folder}/folder`);
    for (
      const [command, message] of [
        ["plain", "command 'plain' may not be run"],
        ["folder", "command 'folder' not in PATH"],
        [`${folder}/none`, `command '${folder}/none' does not exist`],
      ] as const
    ) {
      const check = await look(command, folder);
      assert.ok("fault" in check, command);
      assert.equal(check.fault.message, message);
    }
  });
});

Deno.test("the interpreter is what the first line names", () => {
  for (
    const [line, interpreter] of [
      ["#!/bin/sh -e", "/bin/sh"],
      ["#! /usr/bin/perl", "/usr/bin/perl"],
      ["#!/usr/bin/env node\r", "node"],
      ["#!/usr/bin/env -S LANG=C deno run", "deno"],
      ["#!", undefined],
      ["\x7fELF", undefined],
      ["", undefined],
    ] as const
  ) assert.equal(interpreterOf(line), interpreter, line);
});
