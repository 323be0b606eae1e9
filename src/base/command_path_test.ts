import assert from "node:assert/strict";
import { SysError } from "./errors.ts";
import { findCommand, programFacts } from "./command_path.ts";

const files: { [path: string]: { isFile: boolean; mode: number } } = {
  "/bin/tool": { isFile: true, mode: 0o755 },
  "/opt/tool": { isFile: true, mode: 0o755 },
  "/plain/tool": { isFile: true, mode: 0o644 },
  "/folders/tool": { isFile: false, mode: 0o755 },
  "/project/run.sh": { isFile: true, mode: 0o700 },
};
const facts = (path: string) => Promise.resolve(files[path]);
const find = (command: string, path?: string) =>
  findCommand(command, { cwd: "/project", path, facts });

async function failure(work: Promise<string>): Promise<SysError> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof SysError) return thrown;
  }
  throw new Error("It should have failed with a SysError");
}

Deno.test("the first folder of PATH that holds the program wins", async () => {
  assert.equal(await find("tool", "/none:/opt:/bin"), "/opt/tool");
});

Deno.test("folders and files that may not be run are passed over", async () => {
  assert.equal(await find("tool", "/folders:/plain:/bin"), "/bin/tool");
});

Deno.test("a command with a slash is taken from the working folder, PATH aside", async () => {
  assert.equal(await find("./run.sh", "/bin"), "/project/run.sh");
  assert.equal(await find("/bin/tool", undefined), "/bin/tool");
});

Deno.test("[D25] a command that is nowhere is an error that lists the PATH searched", async () => {
  const error = await failure(find("nosuch", "/none:/bin"));
  assert.equal(error.code, "NOT_FOUND");
  assert.match(error.message, /"nosuch" not found in PATH \(searched \/none, \/bin\)/);
  assert.match((await failure(find("nosuch", undefined))).message, /PATH is not set/);
});

Deno.test("[B07] a command line in one string gets the hint how to write it", async () => {
  const error = await failure(find("npx -y pkg", "/bin"));
  assert.match(error.hint ?? "", /command: npx and args: \["-y","pkg"\]/);
});

Deno.test("only a file that may not be run: PERMISSION, and which", async () => {
  const error = await failure(find("tool", "/plain"));
  assert.equal(error.code, "PERMISSION");
  assert.match(error.message, /"\/plain\/tool"/);
});

Deno.test("a folder as a command is told to be no file, not to be missing", async () => {
  const error = await failure(find("/folders/tool"));
  assert.equal(error.code, "NOT_FOUND");
  assert.equal(error.message, 'Command "/folders/tool" is no file');
});

Deno.test("an empty command is not found", async () => {
  assert.equal((await failure(find("", "/bin"))).code, "NOT_FOUND");
});

Deno.test("facts come from the file system, links followed", async () => {
  assert.equal((await programFacts("/bin/sh"))?.isFile, true);
  assert.equal(await programFacts("/bin/no-such-program-here"), undefined);
});
