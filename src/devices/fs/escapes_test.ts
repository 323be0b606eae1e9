/** Ways out of the working folder that a model may try: none leads out, and what is inside stays usable. */
import assert from "node:assert/strict";
import { Redactor } from "../../base/redaction.ts";
import { SysError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { CallOptions } from "../../vfs/device.ts";
import { FILE_TOOLS, WorkingFolder } from "./mod.ts";

const SECRET = "outside-canary";

interface Stage {
  inside: string;
  outside: string;
  call(tool: string, input: JsonObject): Promise<string>;
}

async function withStage(work: (stage: Stage) => Promise<void>): Promise<void> {
  const root = Deno.realPathSync(Deno.makeTempDirSync());
  const [inside, outside] = [`${root}/work`, `${root}/out`];
  for (const folder of [inside, outside, `${inside}/sub`]) Deno.mkdirSync(folder);
  Deno.writeTextFileSync(`${outside}/secret`, SECRET);
  Deno.writeTextFileSync(`${inside}/file`, "hello\n");
  const folder = await WorkingFolder.open(inside);
  const options: CallOptions = {
    signal: new AbortController().signal,
    cancelGraceMs: 0,
    callId: "t1.0",
    idempotencyKey: "k",
  };
  const call = async (name: string, input: JsonObject) => {
    const make = FILE_TOOLS[name];
    if (make === undefined) throw new Error(`There is no tool "${name}"`);
    return JSON.stringify(await make(folder, new Redactor([])).run(input, options));
  };
  try {
    await work({ inside, outside, call });
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

async function refusedWith(work: Promise<string>, what: string): Promise<void> {
  try {
    const answer = await work;
    assert.ok(!answer.includes(SECRET), `${what} gave the secret`);
    assert.fail(`${what} was not refused: ${answer}`);
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    assert.ok(!thrown.message.includes(SECRET));
  }
}

/** Names of paths by what they try. */
function escapes({ inside, outside }: Stage): { [what: string]: string } {
  Deno.symlinkSync(`${outside}/secret`, `${inside}/link`);
  Deno.symlinkSync(outside, `${inside}/folder-link`);
  Deno.symlinkSync("../out", `${inside}/relative-link`);
  Deno.symlinkSync(`${inside}/link`, `${inside}/link-to-link`);
  Deno.symlinkSync(`${inside}/loop`, `${inside}/loop`);
  Deno.symlinkSync("/", `${inside}/sub/root`);
  Deno.symlinkSync(`${inside}/../out/secret`, `${inside}/dotted-link`);
  return {
    "a parent": "../out/secret",
    "a parent from below": "sub/../../out/secret",
    "many parents": "../../../../../../../../etc/passwd",
    "an absolute path": `${outside}/secret`,
    "an absolute path with a parent in it": `${inside}/../out/secret`,
    "a link to a file": "link",
    "a link to a folder": "folder-link/secret",
    "a relative link": "relative-link/secret",
    "a link to a link": "link-to-link",
    "a link with a parent in it": "dotted-link",
    "a link in circles": "loop",
    "a link to the root": "sub/root/etc/passwd",
    "the root of the process": "/proc/self/root/etc/passwd",
    "the folder of the process": "/proc/self/cwd/etc/passwd",
    "an open file of the process": "/proc/self/fd/0",
    "the environment of the process": "/proc/self/environ",
    "a device": "/dev/zero",
    "a NUL character": "file\0../../out/secret",
    "another case": inside.toUpperCase() + "/../out/secret",
    "slashes and dots": ".//./..//out/./secret",
    "what begins like the folder": `${inside}-other/secret`,
    "a percent-encoded parent": "%2e%2e/out/secret",
    "an endless path": "a/".repeat(5_000) + "secret",
    "the home": "~/.ssh/id_rsa",
  };
}

Deno.test("no path that a model can think of leads a file tool out of the working folder", async () => {
  await withStage(async (stage) => {
    for (const [what, path] of Object.entries(escapes(stage))) {
      await refusedWith(stage.call("Read", { path }), `Read of ${what}`);
      await refusedWith(
        stage.call("Edit", { path, old_text: SECRET, new_text: "x" }),
        `Edit of ${what}`,
      );
      const folder = path.slice(0, path.lastIndexOf("/")) || path;
      if (folder !== ".//./..//out/." && !folder.includes("%")) {
        await refusedWith(stage.call("Glob", { pattern: "**", folder }), `Glob of ${what}`);
      }
    }
    assert.equal(Deno.readTextFileSync(`${stage.outside}/secret`), SECRET);
  });
});

Deno.test("nothing outside can be made or replaced", async () => {
  await withStage(async (stage) => {
    const paths = escapes(stage);
    for (const what of ["a percent-encoded parent", "the home"]) delete paths[what];
    for (const [what, path] of Object.entries(paths)) {
      await refusedWith(stage.call("Write", { path, content: "x" }), `Write of ${what}`);
    }
    await refusedWith(
      stage.call("Write", { path: "folder-link/new", content: "x" }),
      "Write through a link",
    );
    await refusedWith(
      stage.call("Write", { path: "sub/root/tmp/a/b", content: "x" }),
      "folders made through a link",
    );
    assert.deepEqual([...Deno.readDirSync(stage.outside)].map(({ name }) => name), ["secret"]);
    assert.equal(Deno.readTextFileSync(`${stage.outside}/secret`), SECRET);
  });
});

Deno.test("Grep and Glob follow no link out, and a hard link is replaced, not written through", async () => {
  await withStage(async (stage) => {
    escapes(stage);
    assert.ok(!(await stage.call("Grep", { pattern: "canary" })).includes('canary"'));
    assert.ok(!(await stage.call("Glob", { pattern: "**/secret" })).includes("out"));
    Deno.linkSync(`${stage.outside}/secret`, `${stage.inside}/hard`);
    await stage.call("Write", { path: "hard", content: "mine" });
    assert.equal(Deno.readTextFileSync(`${stage.outside}/secret`), SECRET);
  });
});

Deno.test("pipes, sockets and devices inside are refused at once", async () => {
  await withStage(async (stage) => {
    const { success } = await new Deno.Command("mkfifo", { args: [`${stage.inside}/pipe`] })
      .output();
    assert.ok(success);
    await refusedWith(stage.call("Read", { path: "pipe" }), "Read of a pipe");
    await refusedWith(stage.call("Write", { path: "pipe", content: "x" }), "Write of a pipe");
    assert.ok((await stage.call("Grep", { pattern: "hello" })).includes("file:1:hello"));
  });
});

Deno.test("what is inside is used by relative, absolute and linked paths", async () => {
  await withStage(async (stage) => {
    Deno.symlinkSync("file", `${stage.inside}/alias`);
    for (const path of ["file", "./sub/../file", `${stage.inside}/file`, "alias"]) {
      assert.match(await stage.call("Read", { path }), /hello/);
    }
    await stage.call("Write", { path: "alias", content: "new" });
    assert.equal(Deno.readTextFileSync(`${stage.inside}/file`), "new");
    assert.ok(Deno.lstatSync(`${stage.inside}/alias`).isSymlink);
  });
});
