import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import type { Storage } from "../base/storage.ts";
import { type AgentPlaces, findAgent } from "./find_agent.ts";
import { listAgents } from "./known_agents.ts";

const MANIFEST = "instructions: do\nmodels: { provider: scripted, script: s.yaml }\n";

/** A made-up machine: HOME with a project in it, and a way to put agents anywhere. */
class Machine {
  readonly root: string;
  readonly places: AgentPlaces;

  constructor(root: string) {
    this.root = root;
    const script = { "s.yaml": "turns: []\n" };
    this.places = {
      storage: disk,
      cwd: join(root, "home/project/sub"),
      home: join(root, "home"),
      uid: Deno.uid() ?? 0,
      config: join(root, "home/.config/rnix"),
      embedded: [{ name: "demo", files: { "agent.yaml": `name: demo\n${MANIFEST}`, ...script } }],
    };
  }

  async agent(folder: string, name: string): Promise<string> {
    const path = join(this.root, folder);
    await Deno.mkdir(path, { recursive: true, mode: 0o755 });
    await Deno.writeTextFile(join(path, "agent.yaml"), `name: ${name}\n${MANIFEST}`);
    await Deno.writeTextFile(join(path, "s.yaml"), "turns: []\n");
    return join(path, "agent.yaml");
  }

  async find(reference: string, change: Partial<AgentPlaces> = {}) {
    const { agent, scope, notices } = await findAgent(reference, { ...this.places, ...change });
    return { name: agent.manifest.name, path: agent.path, scope, notices };
  }

  async error(reference: string, change: Partial<AgentPlaces> = {}): Promise<SysError> {
    try {
      await this.find(reference, change);
    } catch (thrown) {
      assert.ok(thrown instanceof SysError, String(thrown));
      return thrown;
    }
    throw new Error(`"${reference}" was found`);
  }
}

function machineTest(name: string, work: (machine: Machine) => Promise<void>): void {
  Deno.test(name, async () => {
    const root = await Deno.realPath(await Deno.makeTempDir());
    try {
      const machine = new Machine(root);
      await Deno.mkdir(machine.places.cwd, { recursive: true });
      await work(machine);
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  });
}

machineTest("a file or a folder on the command line is consent", async (machine) => {
  const path = await machine.agent("home/project/sub/tools/helper", "helper");
  for (const reference of ["./tools/helper", "tools/helper/", "tools/helper/agent.yaml", path]) {
    const found = await machine.find(reference);
    assert.deepEqual(found, { name: "helper", path, scope: "path", notices: [] }, reference);
  }
  await Deno.copyFile(path, join(machine.places.cwd, "other.yaml"));
  await Deno.writeTextFile(join(machine.places.cwd, "s.yaml"), "turns: []\n");
  assert.equal((await machine.find("other.yaml")).scope, "path");
});

machineTest("a link to a manifest or its folder is followed", async (machine) => {
  const path = await machine.agent("elsewhere/helper", "helper");
  await Deno.symlink(dirname(path), join(machine.places.cwd, "linked"));
  assert.equal((await machine.find("./linked")).name, "helper");
  await Deno.symlink(join(machine.root, "gone"), join(machine.places.cwd, "dangling"));
  assert.match(
    (await machine.error("./dangling")).message,
    /dangling:1:1: This link leads nowhere/,
  );
});

machineTest(
  "names: .rnix/agents, then the user's, then agents/, then those inside",
  async (machine) => {
    assert.equal((await machine.find("demo")).scope, "embedded");
    const folders: [string, string][] = [
      ["home/project/sub/agents/demo", "project"],
      ["home/.config/rnix/agents/demo", "user"],
      ["home/project/.rnix/agents/demo", "project"],
    ];
    for (const [folder, scope] of folders) {
      const path = await machine.agent(folder, "demo");
      const found = await machine.find("demo");
      assert.deepEqual([found.path, found.scope], [path, scope], folder);
    }
  },
);

machineTest("a cloned folder called like an agent doesn't take its place", async (machine) => {
  await machine.agent("home/project/sub/demo", "evil");
  assert.equal((await machine.find("demo")).scope, "embedded");
  assert.equal((await machine.find("./demo")).name, "evil");
  await machine.agent("home/project/sub/plain", "plain");
  assert.equal((await machine.find("plain")).scope, "path", "no agent has that name");
});

machineTest("the nearest .rnix/ is the project's, up to HOME and no further", async (machine) => {
  await machine.agent(".rnix/agents/above", "above");
  await machine.error("above");
  await machine.agent("home/.rnix/agents/above", "at-home");
  assert.equal((await machine.find("above")).name, "at-home");
  await machine.agent("home/project/.rnix/agents/other", "other");
  await machine.error("above");
  assert.equal((await machine.find("other")).name, "other");
});

machineTest("the search for .rnix/ ends at the border of a file system", async (machine) => {
  await machine.agent("home/.rnix/agents/above", "above");
  const storage: Storage = {
    ...disk,
    async stat(path) {
      const facts = await disk.stat(path);
      const isMount = path.startsWith(join(machine.root, "home/project"));
      return facts === undefined ? facts : { ...facts, deviceId: isMount ? 1 : 2 };
    },
  };
  await machine.error("above", { storage });
  assert.equal((await machine.find("above")).name, "above");
});

machineTest(
  "a .rnix/ that others own or can write, or a link, is not followed",
  async (machine) => {
    const rnix = join(machine.root, "home/project/.rnix");
    await machine.agent("home/project/.rnix/agents/x", "x");
    assert.equal((await machine.find("x")).name, "x");

    const foreign = await machine.error("x", { uid: 4242 });
    assert.match(foreign.message, /it belongs to user \d+, not to you \(4242\)/);
    for (const mode of [0o775, 0o757]) {
      await Deno.chmod(rnix, mode);
      assert.match((await machine.error("x")).message, /other users may write it; run "chmod go-w/);
    }
    const found = await machine.find("demo");
    assert.match(found.notices.join(), /\.rnix" is ignored/, "told even when the name is found");

    await Deno.chmod(rnix, 0o755);
    await Deno.rename(rnix, join(machine.root, "moved"));
    await Deno.symlink(join(machine.root, "moved"), rnix);
    assert.match((await machine.error("x")).message, /it is a link; make it a folder/);
  },
);

machineTest("a bad .rnix/ doesn't uncover one further up", async (machine) => {
  await machine.agent("home/.rnix/agents/x", "x");
  await Deno.mkdir(join(machine.root, "home/project/.rnix"), { mode: 0o755 });
  await Deno.chmod(join(machine.root, "home/project/.rnix"), 0o777);
  await machine.error("x");
});

machineTest("what isn't found is told with what there is, and the nearest", async (machine) => {
  await machine.agent("home/.config/rnix/agents/reviewer", "reviewer");
  const error = await machine.error("reviwer");
  assert.equal(error.code, "NOT_FOUND");
  assert.equal(error.exitCode, 2);
  assert.equal(error.message, 'No agent "reviwer"; there are reviewer, demo');
  assert.equal(error.hint, 'did you mean "reviewer"?');
  const none = await machine.error("zzzz", { embedded: [] });
  assert.match(none.hint ?? "", /give one of these names, or a path/);
  assert.equal((await machine.error("")).code, "INVALID");
});

machineTest(
  "a path that isn't there, or holds no manifest, is told with the nearest",
  async (machine) => {
    await machine.agent("home/project/sub/tools/helper", "helper");
    const gone = await machine.error("tools/helpr");
    assert.deepEqual([gone.code, gone.exitCode], ["NOT_FOUND", 2]);
    assert.equal(gone.message, 'Nothing at "tools/helpr"');
    assert.equal(gone.hint, 'did you mean "tools/helper"?');
    assert.match((await machine.error("./nothing/like/this.yaml")).hint ?? "", /give the path/);
    const folder = await machine.error("./tools");
    assert.equal(folder.message, 'The folder "./tools" has no agent.yaml');
    assert.equal(folder.hint, 'did you mean "tools/helper"?');
    await Deno.mkdir(join(machine.places.cwd, "empty"));
    assert.match((await machine.error("./empty")).hint ?? "", /give the path of a manifest/);
  },
);

machineTest(
  "a folder in place of the manifest, or one too large, is told as such",
  async (machine) => {
    const cwd = machine.places.cwd;
    await Deno.mkdir(join(cwd, "a/agent.yaml"), { recursive: true });
    assert.match((await machine.error("./a")).message, /a\/agent.yaml:1:1: This is a folder/);
    await Deno.writeTextFile(join(cwd, "big.yaml"), "#".repeat(256 * 1024 + 1));
    assert.match((await machine.error("big.yaml")).message, /has 262145 bytes; at most 262144/);
    await new Deno.Command("mkfifo", { args: [join(cwd, "pipe.yaml")] }).output();
    assert.match((await machine.error("pipe.yaml")).message, /This is not a regular file/);
  },
);

machineTest("instructions.md and the script are read from beside the manifest", async (machine) => {
  const path = await machine.agent("home/project/sub/a", "a");
  const folder = dirname(path);
  await Deno.writeTextFile(join(folder, "instructions.md"), "From beside.\n");
  assert.match((await machine.error("./a")).message, /Both "instructions" and an instructions.md/);
  await Deno.writeTextFile(path, "name: a\nmodels: { provider: scripted, script: s.yaml }\n");
  const { agent } = await findAgent("./a", machine.places);
  assert.equal(agent.manifest.instructions, "From beside.\n");
  assert.equal(agent.scriptText, "turns: []\n");
  assert.equal(agent.folder, folder);
  await Deno.writeFile(join(folder, "instructions.md"), Uint8Array.of(0xff, 0xfe));
  assert.match((await machine.error("./a")).message, /a\/instructions.md:1:1: This is not UTF-8/);
  await Deno.writeTextFile(join(folder, "instructions.md"), " \n");
  await Deno.remove(join(folder, "s.yaml"));
  const both = await machine.error("./a");
  assert.match(both.message, /^2 mistakes\n.*agent.yaml:2:39: No script at "s.yaml"/);
  assert.match(both.message, /instructions.md:1:1: The file is empty/);
});

machineTest("all agents that have a name are listed once, first place first", async (machine) => {
  await machine.agent("home/.config/rnix/agents/demo", "demo");
  await machine.agent("home/project/.rnix/agents/b", "b");
  await machine.agent("home/project/sub/agents/Not-A-Name", "c");
  await Deno.mkdir(join(machine.places.cwd, "agents/no-manifest"));
  const listed = (await listAgents(machine.places)).map(({ name, scope }) => `${scope} ${name}`);
  assert.deepEqual(listed, ["project b", "user demo"]);
});
