import assert from "node:assert/strict";
import { onMachine, SCRIPT } from "../../../tests/doubles/made_up_machine.ts";

const DESKTOP = JSON.stringify({
  mcpServers: {
    files: { command: "npx", args: ["-y", "server-filesystem", "/data"] },
    github: { command: "npx", args: ["-y", "gh"], env: { GITHUB_TOKEN: "ghp_written_out" } },
  },
});

const YAML = `servers:
  files:
    command: npx
    args: [-y, server-filesystem, /data]
  github:
    command: npx
    args: [-y, gh]
    env:
      GITHUB_TOKEN: ghp_written_out
`;

Deno.test("[B6] servers of another program are added to the user's mcp.yaml, a line each, and told of", async () => {
  await onMachine({ "bin/npx": SCRIPT, "project/desktop.json": DESKTOP }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["mcp", "import", "desktop.json"]);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      "[import] added files to ~/.config/rnix/mcp.yaml\n" +
        "[import] added github to ~/.config/rnix/mcp.yaml\n",
    );
    assert.equal(
      stderr,
      "note: github: env.GITHUB_TOKEN is written out; better as ${GITHUB_TOKEN}\n",
    );
    assert.equal(Deno.readTextFileSync(`${machine.folder}/home/.config/rnix/mcp.yaml`), YAML);
    const check = await machine.rnix(["check", "mcp"]);
    assert.equal(check.code, 0);
    assert.match(check.stdout, /^ {2}- github: used by no agent$/m);
  });
});

Deno.test("what is there already is kept, and replaced only with --force; comments stay", async () => {
  await onMachine({
    "home/.config/rnix/mcp.yaml": "# mine\nservers:\n  files: { command: mine } # this one\n",
    "project/desktop.json": DESKTOP,
  }, async (machine) => {
    const path = `${machine.folder}/home/.config/rnix/mcp.yaml`;
    const kept = await machine.rnix(["mcp", "import", "desktop.json"]);
    assert.equal(kept.code, 0);
    assert.equal(
      kept.stdout,
      "[import] kept files of ~/.config/rnix/mcp.yaml; --force replaces it\n" +
        "[import] added github to ~/.config/rnix/mcp.yaml\n",
    );
    assert.match(
      Deno.readTextFileSync(path),
      /^# mine\nservers:\n {2}files: .*command: mine.*# this one$/m,
    );
    const forced = await machine.rnix(["mcp", "import", "desktop.json", "--force", "--json"]);
    assert.equal(forced.code, 0);
    const { ok, data } = JSON.parse(forced.stdout);
    assert.equal(ok, true);
    assert.equal(data.path, "/home/.config/rnix/mcp.yaml");
    assert.deepEqual(data.servers, [
      { name: "files", outcome: "replaced" },
      { name: "github", outcome: "replaced" },
    ]);
    assert.deepEqual(data.notes.map(({ server }: { server: string }) => server), ["github"]);
    assert.match(Deno.readTextFileSync(path), /^# mine\n/);
  });
});

Deno.test("--dry-run prints the YAML and writes nothing", async () => {
  await onMachine({ "project/desktop.json": DESKTOP }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix([
      "mcp",
      "import",
      "--dry-run",
      "desktop.json",
    ]);
    assert.equal(code, 0);
    assert.equal(stdout, YAML);
    assert.match(stderr, /^\[import\] would add files to /);
    assert.deepEqual(Deno.readDirSync(`${machine.folder}/home`).toArray(), []);
    const json = JSON.parse(
      (await machine.rnix(["mcp", "import", "--dry-run", "desktop.json", "--json"])).stdout,
    );
    assert.equal(json.data.yaml, YAML);
    assert.equal(json.data.dry_run, true);
    assert.equal((await machine.rnix(["mcp", "import", "desktop.json"])).code, 0);
    const again = await machine.rnix(["mcp", "import", "--dry-run", "desktop.json"]);
    assert.equal(again.stdout, "", "what is kept is nothing to add");
  });
});

Deno.test("[B6] stdin is read where no file is named, in pieces, as JSON or as TOML", async () => {
  await onMachine({}, async (machine) => {
    const pieces = [DESKTOP.slice(0, 20), DESKTOP.slice(20)];
    const json = await machine.rnix(["mcp", "import"], {}, pieces);
    assert.equal(json.code, 0);
    const toml = '[[mcp_servers]]\nname = "db"\ncommand = "python"\n';
    const dash = await machine.rnix(["mcp", "import", "-"], {}, [toml]);
    assert.equal(dash.stdout, "[import] added db to ~/.config/rnix/mcp.yaml\n");
    const told = await machine.rnix(["mcp", "import", "--format", "toml"], {}, [
      "[mcp_servers.x]\ncommand='y'\n",
    ]);
    assert.equal(told.stdout, "[import] added x to ~/.config/rnix/mcp.yaml\n");
    const nothing = await machine.rnix(["mcp", "import"]);
    assert.equal(nothing.code, 2);
  });
});

Deno.test("what can't be carried over is skipped with its reason, exit 1, the rest goes on", async () => {
  await onMachine({
    "project/theirs.json": JSON.stringify({
      mcpServers: {
        good: { command: "x" },
        socket: { type: "websocket", url: "wss://x" },
        none: {},
      },
    }),
  }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix(["mcp", "import", "theirs.json"]);
    assert.equal(code, 1);
    assert.equal(
      stdout,
      `[import] added good to ~/.config/rnix/mcp.yaml
[import] skipped socket: transport "websocket" is unknown; left out
[import] skipped none: it has neither a command nor a url; left out
`,
    );
    assert.equal(stderr, "");
    const json = JSON.parse(
      (await machine.rnix(["mcp", "import", "theirs.json", "--json"])).stdout,
    );
    assert.equal(json.ok, false);
    assert.equal(json.error.message, "2 servers could not be carried over");
    assert.deepEqual(json.data.servers[1].reasons, ['transport "websocket" is unknown; left out']);
  });
});

Deno.test("input that can't be read is told with its place, exit 2, and nothing is written", async () => {
  await onMachine({
    "project/bad.json": '{\n  "mcpServers": { "a": { "command": }\n}',
    "project/bad.toml": "[[mcp_servers]]\nname = \n",
    "project/empty.json": "{}",
  }, async (machine) => {
    const cases: [string[], RegExp][] = [
      [["bad.json"], /^\[INVALID\] bad\.json:2:\d+: Invalid JSON/],
      [["bad.toml"], /^\[INVALID\] bad\.toml:2:\d+: Invalid TOML/],
      [["empty.json"], /^\[INVALID\] No MCP servers in "empty\.json"/],
      [["nowhere.json"], /^\[NOT_FOUND\] Nothing at "nowhere\.json"/],
      [["."], /^\[INVALID\] "\." can't be imported: This is a folder/],
      [["empty.json", "--format", "xml"], /^\[INVALID\] "--format" doesn't know "xml"/],
    ];
    for (const [args, message] of cases) {
      const { code, stdout, stderr } = await machine.rnix(["mcp", "import", ...args]);
      assert.equal(code, 2, args.join(" "));
      assert.equal(stdout, "");
      assert.match(stderr, message);
    }
    assert.deepEqual(Deno.readDirSync(`${machine.folder}/home`).toArray(), []);
  });
});

Deno.test("an mcp.yaml with mistakes is told and not written over", async () => {
  const broken = "servers:\n  s: { comand: x }\n";
  await onMachine({
    "home/.config/rnix/mcp.yaml": broken,
    "project/desktop.json": DESKTOP,
  }, async (machine) => {
    const { code, stderr } = await machine.rnix(["mcp", "import", "desktop.json", "--force"]);
    assert.equal(code, 2);
    assert.match(stderr, /mcp\.yaml:2:8: /);
    assert.equal(Deno.readTextFileSync(`${machine.folder}/home/.config/rnix/mcp.yaml`), broken);
  });
});

/** Whether the project's file counts as trusted, as who runs would find it. */
function trusted(folder: string): boolean {
  const path = `${folder}/home/.local/state/rnix/trust.json`;
  try {
    const { trusted } = JSON.parse(Deno.readTextFileSync(path));
    return Object.hasOwn(trusted, `${folder}/project/.rnix/mcp.yaml`);
  } catch {
    return false;
  }
}

Deno.test("--project writes the project's file and trusts it, as it came from the person", async () => {
  await onMachine({ "project/desktop.json": DESKTOP }, async (machine) => {
    const { code, stdout, stderr } = await machine.rnix([
      "mcp",
      "import",
      "--project",
      "desktop.json",
    ]);
    assert.equal(code, 0);
    assert.match(stdout, /^\[import\] added files to \.rnix\/mcp\.yaml\n/);
    assert.doesNotMatch(stderr, /--trust/);
    assert.equal(Deno.readTextFileSync(`${machine.folder}/project/.rnix/mcp.yaml`), YAML);
    assert.ok(trusted(machine.folder));
    const again = await machine.rnix(["mcp", "import", "--project", "-"], {}, [
      '{"mcpServers":{"more":{"command":"x"}}}',
    ]);
    assert.equal(again.stdout, "[import] added more to .rnix/mcp.yaml\n");
    assert.equal(again.stderr, "");
  });
});

Deno.test("a project's file that nobody has agreed to doesn't become trusted by an import", async () => {
  await onMachine({
    "project/.rnix/mcp.yaml": "servers:\n  theirs: { command: rm, args: [-rf] }\n",
    "project/desktop.json": DESKTOP,
  }, async (machine) => {
    const { code, stderr } = await machine.rnix(["mcp", "import", "--project", "desktop.json"]);
    assert.equal(code, 0);
    assert.match(stderr, /^note: \.rnix\/mcp\.yaml has servers that you haven't agreed to/m);
    assert.ok(!trusted(machine.folder));
  });
});
