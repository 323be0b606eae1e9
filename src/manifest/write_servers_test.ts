import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import { writeServers, type WriteServersOptions } from "./write_servers.ts";

/** Writes to an `mcp.yaml` of this text; gives what became of it. */
async function write(
  before: string | undefined,
  options: Partial<WriteServersOptions> & Pick<WriteServersOptions, "servers">,
) {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-write-" }));
  const path = `${root}/config/mcp.yaml`;
  try {
    if (before !== undefined) {
      Deno.mkdirSync(`${root}/config`);
      Deno.writeTextFileSync(path, before);
    }
    const result = await writeServers(disk, {
      ...{ path, shown: "mcp.yaml", overwrite: false },
      ...options,
    });
    const text = options.dryRun && before === undefined ? "" : Deno.readTextFileSync(path);
    const left = [...Deno.readDirSync(`${root}/config`)].map(({ name }) => name);
    return { ...result, text, left, mode: (Deno.statSync(path).mode ?? 0) & 0o777 };
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

const NPX = { command: "npx", args: ["-y", "x@1"], env: { TOKEN: "${TOKEN}" } };
const REMOTE = { url: "https://x/mcp", headers: { Authorization: "Bearer ${T}: #1" } };

Deno.test("a file is made with its folder, for its owner alone", async () => {
  const { text, added, left, mode } = await write(undefined, {
    servers: [{ name: "files", entry: NPX }, { name: "remote", entry: REMOTE }],
  });
  assert.deepEqual(added, ["files", "remote"]);
  assert.deepEqual(left, ["mcp.yaml"]);
  assert.equal(mode, 0o600);
  assert.equal(
    text,
    `servers:
  files:
    command: npx
    args: [-y, x@1]
    env:
      TOKEN: \${TOKEN}
  remote:
    url: https://x/mcp
    headers:
      Authorization: "Bearer \${T}: #1"
`,
  );
});

const COMMENTED = `# Servers of mine

servers:
  # the first one
  first: { command: a } # and why
  taken: # it is mine
    command: "b"
# the end
`;

Deno.test("comments and other entries stay, a name that is taken isn't touched", async () => {
  const { text, added, kept, replaced } = await write(COMMENTED, {
    servers: [{ name: "taken", entry: NPX }, { name: "fresh", entry: { command: "c" } }],
  });
  assert.deepEqual({ added, kept, replaced }, { added: ["fresh"], kept: ["taken"], replaced: [] });
  for (const comment of ["# Servers of mine", "# the first one", "# and why", "# it is mine"]) {
    assert.ok(text.includes(comment), text);
  }
  assert.match(text, /# the end/);
  assert.match(text, /command: "b"/);
  assert.match(text, /\n {2}fresh:\n {4}command: c\n/);
});

Deno.test("a name that is taken is replaced where that was asked for, in its place", async () => {
  const { text, added, replaced } = await write(COMMENTED, {
    servers: [{ name: "first", entry: { command: "c" } }],
    overwrite: true,
  });
  assert.deepEqual({ added, replaced }, { added: [], replaced: ["first"] });
  assert.ok(text.indexOf("first:") < text.indexOf("taken:"));
  assert.match(text, /first:\s+command: c/);
  assert.doesNotMatch(text, /command: a/);
});

Deno.test("where nothing is new, or nothing is to be written, the file stays byte for byte", async () => {
  const same = await write(COMMENTED, { servers: [{ name: "taken", entry: NPX }] });
  assert.equal(same.text, COMMENTED);
  const dry = await write(COMMENTED, { servers: [{ name: "new", entry: NPX }], dryRun: true });
  assert.deepEqual([dry.text, dry.added], [COMMENTED, ["new"]]);
});

Deno.test("an empty file, one of comments, and empty mappings take entries", async () => {
  const servers = [{ name: "a", entry: { command: "c" } }];
  for (
    const before of [
      "",
      "# mine\n",
      "servers: {}\n",
      "servers: { x: { command: y } }\n",
    ]
  ) {
    const { text } = await write(before, { servers });
    assert.match(text, /a:\s*\{?\s*command: c/, before);
    if (before.startsWith("#")) assert.match(text, /^# mine\n/);
    if (before.includes("x:")) assert.match(text, /x: \{ ?command: y ?\}/);
  }
});

Deno.test("a file with mistakes, and a link, are not written over", async () => {
  const servers = [{ name: "a", entry: NPX }];
  for (
    const before of ["servers: {", "servers: [a]\n", "servers: { a: { comand: x } }\n", "a\0b"]
  ) {
    await assert.rejects(
      write(before, { servers, overwrite: true }),
      (error) => error instanceof SysError && error.code === "INVALID" && error.exitCode === 2,
      before,
    );
  }
  const root = Deno.makeTempDirSync({ prefix: "rnix-write-" });
  try {
    Deno.writeTextFileSync(`${root}/elsewhere.yaml`, "");
    Deno.symlinkSync(`${root}/elsewhere.yaml`, `${root}/mcp.yaml`);
    const options = { path: `${root}/mcp.yaml`, shown: "mcp.yaml", servers, overwrite: false };
    await assert.rejects(writeServers(disk, options), /"mcp\.yaml" is a link/);
    assert.ok(Deno.lstatSync(`${root}/mcp.yaml`).isSymlink);
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
});

Deno.test("an entry that mcp.yaml can't hold is written nowhere", async () => {
  await assert.rejects(
    write("", { servers: [{ name: "a", entry: { comand: "x" } }] }),
    /mcp\.yaml:\d+:\d+: Unknown key "comand"/,
  );
});
