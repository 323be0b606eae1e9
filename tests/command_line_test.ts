import assert from "node:assert/strict";

const root = new URL("../", import.meta.url).pathname;
const launcher = `${root}scripts/rnix`;

/** The cache of packages: with a made-up home Deno would fill a new one. */
const denoFolder: string = JSON.parse(
  new TextDecoder().decode(
    new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).outputSync().stdout,
  ),
).denoDir;

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the real program in a made-up home and working folder. */
async function rnix(args: string[], options: { cwd?: string; home?: string } = {}): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(launcher, {
    args,
    cwd: options.cwd ?? "/",
    env: { RNIX_HOME: options.home ?? "/nowhere", NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

async function inTempFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-cli-" }));
  try {
    await work(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("the program says its version from any folder, and nothing on stderr", async () => {
  assert.deepEqual(await rnix(["version"]), {
    code: 0,
    stdout: `rnix 0.1.0 (deno ${Deno.version.deno}, ${Deno.build.os})\n`,
    stderr: "",
  });
});

Deno.test("its version is the one of deno.json", async () => {
  const config: { version: string } = JSON.parse(Deno.readTextFileSync(`${root}deno.json`));
  const { stdout } = await rnix(["version", "--json"]);
  assert.equal(JSON.parse(stdout).data.version, config.version);
});

Deno.test("help is a result, a mistake isn't", async () => {
  const help = await rnix(["--help"]);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /^rnix runs AI agents the way Unix runs programs\.\n/);
  assert.equal(help.stderr, "");
  const mistake = await rnix(["run", "demo", "--strem"]);
  assert.deepEqual(mistake, {
    code: 2,
    stdout: "",
    stderr: '[INVALID] Unknown flag "--strem" for "rnix run"\nhint: did you mean --stream?\n',
  });
});

Deno.test("a reader that closes the pipe is no crash", async () => {
  const { code, stderr } = await new Deno.Command("sh", {
    args: ["-c", `{ "$1" help; echo "exit $?" >&2; } | true`, "sh", launcher],
    env: { RNIX_HOME: "/nowhere" },
  }).output();
  assert.equal(code, 0);
  assert.equal(new TextDecoder().decode(stderr), "exit 0\n");
});

Deno.test("the launcher works through a link and keeps the working folder", async () => {
  await inTempFolder(async (folder) => {
    const linked = `${folder}/rnix`;
    Deno.symlinkSync(launcher, linked);
    const { code, stdout } = await new Deno.Command(linked, {
      args: ["init", "--json"],
      cwd: folder,
      env: { RNIX_HOME: `${folder}/home`, NO_COLOR: "1" },
    }).output();
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)).data, {
      created: [`${folder}/home/config`, `${folder}/.rnix`],
      kept: [],
    });
  });
});

Deno.test("[A8] init with examples prints its four lines, and a second time overwrites nothing", async () => {
  await inTempFolder(async (folder) => {
    const home = `${folder}/home`;
    const project = `${folder}/project`;
    Deno.mkdirSync(project);
    const init = async () => {
      const { code, stdout, stderr } = await new Deno.Command(launcher, {
        args: ["init", "--with-mcp-examples"],
        cwd: project,
        env: {
          DENO_DIR: denoFolder,
          HOME: home,
          XDG_CONFIG_HOME: "",
          XDG_STATE_HOME: "",
          RNIX_HOME: "",
        },
      }).output();
      const decoder = new TextDecoder();
      assert.equal(decoder.decode(stderr), "");
      assert.equal(code, 0);
      return decoder.decode(stdout);
    };
    assert.equal(
      await init(),
      `[init] created ~/.config/rnix/
[init] created .rnix/
[init] added agents/playwright-demo/ with MCP Playwright config
[init] added agents/github-assistant/ with MCP GitHub config
`,
    );
    const manifest = `${project}/agents/playwright-demo/agent.yaml`;
    Deno.writeTextFileSync(manifest, "name: mine\n");
    assert.equal(
      await init(),
      `[init] kept ~/.config/rnix/
[init] kept .rnix/
[init] kept agents/playwright-demo/
[init] kept agents/github-assistant/
`,
    );
    assert.equal(Deno.readTextFileSync(manifest), "name: mine\n");
  });
});

interface InfoModule {
  specifier: string;
  kind?: string;
  dependencies?: { code?: { specifier?: string }; isDynamic?: boolean }[];
}

/** All that is loaded with some files of the tree, imports at a later moment left out; as paths in the tree where they are. */
async function loadedWith(...files: string[]): Promise<string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "main.ts"],
    cwd: root,
  }).output();
  const info: { modules: InfoModule[] } = JSON.parse(new TextDecoder().decode(stdout));
  const modules = new Map(info.modules.map((module) => [module.specifier, module]));
  const loaded = new Set<string>();
  const visit = (specifier: string) => {
    if (loaded.has(specifier)) return;
    loaded.add(specifier);
    for (const { code, isDynamic } of modules.get(specifier)?.dependencies ?? []) {
      if (code?.specifier !== undefined && !isDynamic) visit(code.specifier);
    }
  };
  for (const file of files) visit(`file://${root}${file}`);
  return [...loaded].map((specifier) => specifier.replace(`file://${root}`, ""));
}

Deno.test("what every command loads at its start is small: base and cli, no package and nothing of Node", async () => {
  const loaded = await loadedWith("main.ts");
  assert.ok(loaded.length > 10, "the graph was read");
  for (const file of loaded) assert.match(file, /^(main\.ts|src\/(base|cli)\/.+\.(ts|txt))$/);
});

Deno.test("ps adds files of the tree alone: no package and nothing of Node, whose loading takes longer than ps", async () => {
  const loaded = await loadedWith("main.ts", "src/client/mod.ts", "src/daemon/reader.ts");
  assert.ok(loaded.includes("src/journal/open.ts"), "the graph was read");
  for (const file of loaded) assert.match(file, /^(main\.ts|src\/.+\.(ts|txt|sh))$/);
});

Deno.test("a shell that completes a name, and the look at who started it, load no package either", async () => {
  const loaded = await loadedWith(
    "main.ts",
    "src/manifest/known_agents.ts",
    "src/manifest/embedded.ts",
    "src/base/disk.ts",
    "src/client/ancestors.ts",
  );
  assert.ok(loaded.includes("src/manifest/names.ts"), "the graph was read");
  for (const file of loaded) {
    assert.match(file, /^(main\.ts|(src|agents)\/.+\.(ts|txt|sh|yaml)|node:path)$/);
  }
});
