/** The build as a command. `DENORT_BIN` names the base binary of `deno compile`, so that nothing is downloaded. */
import assert from "node:assert/strict";

const ROOT = new URL("../", import.meta.url).pathname;

interface Built {
  code: number;
  stdout: string;
  stderr: string;
  /** Whether the executable is there and can be executed. */
  made: boolean;
  /** Whatever else lies beside it. */
  beside: string[];
}

async function build(args: string[], baseBinary: string): Promise<Built> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-build-test-" }));
  try {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-prompt", "--allow-read", "--allow-write", "--allow-env", "--allow-run"],
        ...["--allow-sys", "scripts/build.ts", "--output", `${folder}/new/rnix`, ...args],
      ],
      cwd: ROOT,
      env: { DENORT_BIN: baseBinary, NO_COLOR: "1" },
    }).output();
    const beside = code === 0 ? [...Deno.readDirSync(`${folder}/new`)].map(({ name }) => name) : [];
    const decoder = new TextDecoder();
    return {
      code,
      stdout: decoder.decode(stdout),
      stderr: decoder.decode(stderr),
      made: code === 0 && ((Deno.statSync(`${folder}/new/rnix`).mode ?? 0) & 0o111) === 0o111,
      beside,
    };
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("with a base binary it is compiled, and says so", async () => {
  // Any executable of the system's format is taken for one; this one can't run the program, but the compiler writes it.
  const { code, stdout, stderr, made, beside } = await build([], Deno.execPath());
  assert.equal(code, 0, stderr);
  assert.match(stdout, /\/rnix: compiled, rnix \S+, Deno \S+, \S+, \d+\.\d MB, sha256 \w{64}\n$/);
  assert.ok(made);
  assert.deepEqual(beside, ["rnix"]);
});

Deno.test("a compiler that fails for another reason than a missing base binary fails the build", async () => {
  const { code, stdout, stderr } = await build([], "/nowhere/denort");
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /^Cannot build rnix: deno compile failed: .*Could not find denort at/s);
  assert.doesNotMatch(stderr, /backtrace/);
});

Deno.test("an unknown form or option is refused", async () => {
  const form = await build(["--form", "zip"], "/nowhere");
  assert.equal(form.code, 1);
  assert.match(form.stderr, /--form must be compiled or self-extracting, not "zip"/);
  const option = await build(["--forn", "compiled"], "/nowhere");
  assert.equal(option.code, 1);
  assert.match(option.stderr, /^Cannot build rnix: Unknown option '--forn'/);
});

Deno.test("a self-extracting file for another machine is refused", async () => {
  const args = ["--form", "self-extracting", "--target", "aarch64-apple-darwin"];
  const { code, stderr } = await build(args, "/nowhere");
  assert.equal(code, 1);
  assert.match(stderr, /base binary for aarch64-apple-darwin can't be had, and a self-extracting/);
});
