/**
 * The one executable, alone: copied into an empty folder of an empty home, with npx and the base tools on PATH and no Deno.
 *
 * The self-extracting form is built here, unless `RNIX_TEST_EXECUTABLE` names one that is built already, of either form; that one is tried then.
 * npx is a double that starts the server from the cache of packages, since tests reach nothing but loopback.
 */
import assert from "node:assert/strict";
import { TextLineStream } from "./doubles/text_lines.ts";
import { removeFolder } from "./doubles/remove_folder.ts";
import { copyExecutable, writeExecutable } from "./doubles/executable_file.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const TOOLS =
  "sh tail gzip tar mkdir rm mv uname head sync find grep sed cat sleep kill env tr sort paste";
/** How long after a `kill -9` something may still be there. */
const GONE_MS_MAX = 60_000;

const built = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-executable-" }));
const executable = Deno.env.get("RNIX_TEST_EXECUTABLE") ?? `${built}/rnix`;
globalThis.addEventListener("unload", () => Deno.removeSync(built, { recursive: true }));

/** Builds once for all tests of this file; they share one cache folder as well. */
let building: Promise<void> | undefined;
function build(): Promise<void> {
  return building ??= (async () => {
    if (executable !== `${built}/rnix`) return;
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-prompt", "--allow-read", "--allow-write", "--allow-env", "--allow-run"],
        ...["--allow-sys", "scripts/build.ts", "--form", "self-extracting"],
        ...["--output", executable],
      ],
      cwd: ROOT,
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    assert.match(
      new TextDecoder().decode(stdout),
      /: self-extracting, rnix \S+, Deno \S+, [\w-]+, \d+\.\d MB, sha256 [0-9a-f]{64}\n$/,
    );
  })();
}

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const TALKER = `name: talker
description: Talks for a long time
instructions: Talk.
models: { provider: scripted, script: script.yaml }
mcp:
  servers:
    files:
      command: npx
      args: ["-y", "@modelcontextprotocol/server-filesystem", "."]
`;

/** Speaks for five seconds, so that a signal always finds it at work. */
const SCRIPT = `stream: { size: 1, every: 50ms }
turns:
  - text: "${"a long answer. ".repeat(7)}"
`;

const WORKER = `name: worker
instructions: Work.
models: { provider: scripted, script: script.yaml }
tools: [Write, Grep, Bash]
`;

const WORK = `turns:
  - calls:
    - { tool: Write, input: { path: notes.txt, content: "find me" } }
    - { tool: Write, input: { path: 5, content: "" } }
  - calls:
    - { tool: Grep, input: { pattern: "f.nd", glob: "*.txt" } }
    - { tool: Bash, input: { command: "echo said by sh" } }
  - text: done
`;

/** An empty home with nothing but the executable in a folder of its own. */
class Home {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-home-" }));
  readonly work = `${this.folder}/work`;
  readonly env: { [name: string]: string };

  constructor() {
    const bin = `${this.folder}/bin`;
    Deno.mkdirSync(bin);
    for (const name of ["work", "home", "scratch", "socket"]) {
      Deno.mkdirSync(`${this.folder}/${name}`, { mode: 0o700 });
    }
    for (const tool of TOOLS.split(" ")) {
      const path = ["/usr/bin", "/bin"].map((each) => `${each}/${tool}`).find(exists);
      if (path !== undefined) Deno.symlinkSync(path, `${bin}/${tool}`);
    }
    writeExecutable(`${bin}/npx`, npxDouble());
    copyExecutable(executable, `${this.work}/rnix`);
    // Servers get TMPDIR, so it marks all that a run has started.
    this.env = {
      PATH: bin,
      HOME: `${this.folder}/home`,
      XDG_CACHE_HOME: `${built}/cache`,
      XDG_RUNTIME_DIR: `${this.folder}/socket`,
      TMPDIR: `${this.folder}/scratch`,
    };
  }

  start(...args: string[]): Deno.ChildProcess {
    return new Deno.Command(`${this.work}/rnix`, {
      args,
      cwd: this.work,
      clearEnv: true,
      env: this.env,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  async rnix(...args: string[]): Promise<Ended> {
    const { code, stdout, stderr } = await this.start(...args).output();
    const decoder = new TextDecoder();
    return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  }

  /** OS pids of servers that a run of this home has started and that are still there. */
  async servers(): Promise<string[]> {
    const { stdout } = await new Deno.Command("/bin/sh", {
      args: [
        "-c",
        'grep -lsF "TMPDIR=$0" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do ' +
        'grep -qsaF main.mjs "/proc/$pid/cmdline" || echo "$pid"; done',
        `${this.folder}/scratch`,
      ],
    }).output();
    return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "");
  }

  /** From the daemon's record: asking for it would take longer than a run that talks. */
  daemonPid(): number {
    const record = `${this.folder}/home/.local/state/rnix/daemon.json`;
    return JSON.parse(Deno.readTextFileSync(record)).os_pid;
  }

  /** Ends what was started here. */
  async leave(): Promise<void> {
    const { code, stderr } = await this.rnix("daemon", "stop");
    await removeFolder(this.folder);
    assert.equal(code, 0, stderr);
  }

  files(folder: string): string[] {
    return [...Deno.readDirSync(`${this.folder}/${folder}`)].map(({ name }) => name).toSorted();
  }
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** Takes `-y <server> <folder>`. */
function npxDouble(): string {
  const config: { imports: { [name: string]: string } } = JSON.parse(
    Deno.readTextFileSync(`${ROOT}deno.json`),
  );
  const server = config.imports["@modelcontextprotocol/server-filesystem"] ?? "";
  const info: { denoDir: string } = JSON.parse(
    new TextDecoder().decode(
      new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).outputSync().stdout,
    ),
  );
  return `#!/bin/sh
export DENO_DIR='${info.denoDir}'
exec '${Deno.execPath()}' run -A --config '${ROOT}deno.json' --cached-only ${server} "$3"
`;
}

async function atHome(work: (home: Home) => Promise<void>): Promise<void> {
  await build();
  const home = new Home();
  try {
    await work(home);
  } finally {
    await home.leave();
  }
}

Deno.test("[A1] the executable alone: version, init, the demo, ps", async () => {
  await atHome(async (home) => {
    const version = await home.rnix("version");
    assert.equal(version.stderr, "");
    assert.equal(version.stdout, `rnix 0.1.0 (deno ${Deno.version.deno}, ${Deno.build.os})\n`);
    const init = await home.rnix("init", "--with-mcp-examples");
    assert.equal(init.code, 0, init.stderr);
    assert.equal(init.stdout.split("\n").length, 5, init.stdout);
    assert.deepEqual(home.files("work/agents"), ["github-assistant", "playwright-demo"]);
    const demo = await home.rnix("run", "demo");
    assert.equal(demo.code, 0, demo.stderr);
    assert.match(demo.stdout, /Successfully wrote to rnix-demo-report\.md/);
    assert.match(Deno.readTextFileSync(`${home.work}/rnix-demo-report.md`), /\[FILE\] rnix/);
    const ps = await home.rnix("ps", "-a", "--json");
    const [process] = JSON.parse(ps.stdout).data.processes;
    assert.deepEqual([process.pid, process.agent, process.state], [1, "demo", "dead"]);
    assert.deepEqual(await home.servers(), []);
  });
});

Deno.test("[A1] kill -9 of the daemon that the executable started leaves no server, and resume finishes the run", async () => {
  await atHome(async (home) => {
    Deno.mkdirSync(`${home.work}/talker`);
    Deno.writeTextFileSync(`${home.work}/talker/agent.yaml`, TALKER);
    Deno.writeTextFileSync(`${home.work}/talker/script.yaml`, SCRIPT);
    const child = home.start("run", "talker", "speak", "--stream");
    void child.stderr.cancel();
    let servers: string[] = [];
    for await (const line of child.stdout.pipeThrough(new TextLineStream())) {
      if (servers.length > 0 || JSON.parse(line).type !== "model.delta") continue;
      servers = await home.servers();
      Deno.kill(home.daemonPid(), "SIGKILL");
    }
    assert.notEqual((await child.status).code, 0);
    assert.ok(servers.length > 0, "the server was up");
    const killed = performance.now();
    while ((await home.servers()).length > 0) {
      assert.ok(performance.now() - killed < GONE_MS_MAX, "a server outlives rnix");
    }
    const ps = JSON.parse((await home.rnix("ps", "--json")).stdout);
    assert.equal(ps.data.processes[0].state, "suspended");
    const resumed = await home.rnix("resume", "1");
    assert.equal(resumed.code, 0, resumed.stderr);
    assert.match(resumed.stdout, /^a long answer\./);
  });
});

Deno.test("what is loaded only when it is used is in the executable: the schema check, the worker of Grep, a workflow's parts", async () => {
  await atHome(async (home) => {
    Deno.mkdirSync(`${home.work}/worker`);
    Deno.writeTextFileSync(`${home.work}/worker/agent.yaml`, WORKER);
    Deno.writeTextFileSync(`${home.work}/worker/script.yaml`, WORK);
    const { code, stderr } = await home.rnix("run", "worker", "-v");
    assert.equal(code, 0, stderr);
    assert.match(stderr, /don't fit its schema: \/path must be string/);
    assert.match(stderr, /Grep (?:\{.*\} )?→ \S+ {2}notes\.txt:1:find me/);
    assert.match(stderr, /Bash (?:\{.*\} )?→ \S+ {2}said by sh/);
    const survey = await home.rnix("run", "survey");
    assert.equal(survey.code, 0, survey.stderr);
    assert.match(survey.stdout, /notes\.txt/);
  });
});

Deno.test("the executable keeps to its own folders: nothing of Deno in the home, nothing beside itself", async () => {
  await atHome(async (home) => {
    for (const args of [["version"], ["ps", "-a"], ["journal", "verify", "1"]]) {
      await home.rnix(...args);
    }
    assert.deepEqual(home.files("work"), ["rnix"]);
    assert.ok(home.files("home").every((name) => name === ".local"), home.files("home").join());
  });
});

Deno.test("a signal to the executable reaches the program itself, and its exit code comes back", async () => {
  await atHome(async (home) => {
    Deno.mkdirSync(`${home.work}/talker`);
    Deno.writeTextFileSync(`${home.work}/talker/agent.yaml`, TALKER);
    Deno.writeTextFileSync(`${home.work}/talker/script.yaml`, SCRIPT);
    const child = home.start("run", "talker", "speak", "--stream");
    void child.stderr.cancel();
    let sent = false;
    let last = "";
    for await (const line of child.stdout.pipeThrough(new TextLineStream())) {
      last = line;
      if (sent || JSON.parse(line).type !== "model.delta") continue;
      sent = true;
      child.kill("SIGINT");
    }
    assert.equal((await child.status).code, 9);
    assert.equal(JSON.parse(last).data.reason, "paused");
    assert.equal((await home.rnix("no-such-command")).code, 2);
  });
});
