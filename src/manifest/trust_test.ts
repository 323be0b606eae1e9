import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import type { FoundAgent } from "./find_agent.ts";
import { loadAgentFile } from "./load_agent.ts";
import { requireTrust, type TrustQuestion, TrustStore } from "./trust.ts";

interface Scene {
  state: string;
  store: TrustStore;
  path: string;
  found(scope?: FoundAgent["scope"]): Promise<FoundAgent>;
}

function trustTest(name: string, work: (scene: Scene) => Promise<void>): void {
  Deno.test(name, async () => {
    const root = await Deno.makeTempDir();
    try {
      const path = join(root, "agents/a/agent.yaml");
      await Deno.mkdir(dirname(path), { recursive: true });
      await Deno.writeTextFile(
        path,
        "name: a\nmodels: { provider: scripted, script: s.yaml }\n" +
          'mcp: { servers: { s: { command: npx, args: ["-y", "${PKG:-x}"] } } }\n',
      );
      await Deno.writeTextFile(join(dirname(path), "instructions.md"), "Do it.\n");
      await Deno.writeTextFile(join(dirname(path), "s.yaml"), "turns: []\n");
      const state = join(root, "state/rnix");
      await work({
        state,
        store: new TrustStore(disk, state),
        path,
        async found(scope = "project") {
          return { agent: await loadAgentFile(disk, path), scope, notices: [] };
        },
      });
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  });
}

async function refused(scene: Scene): Promise<string> {
  const options = { store: scene.store, trust: false };
  const error = await requireTrust(await scene.found(), options).then(() => undefined, (e) => e);
  assert.ok(error instanceof SysError && error.code === "UNTRUSTED", String(error));
  assert.equal(error.exitCode, 2);
  assert.match(error.hint ?? "", /--trust/);
  return error.message;
}

trustTest(
  "[N10] an agent of the project runs only after consent, which is remembered",
  async (scene) => {
    assert.match(await refused(scene), /Agent "a" of this project is not trusted yet: \//);
    await requireTrust(await scene.found(), { store: scene.store, trust: true });
    await requireTrust(await scene.found(), { store: scene.store, trust: false });
    const another = new TrustStore(disk, scene.state);
    assert.equal(await another.check((await scene.found()).agent), "trusted");
  },
);

trustTest(
  "[N10] a change of manifest, instructions or script needs consent anew",
  async (scene) => {
    const folder = dirname(scene.path);
    for (const file of ["agent.yaml", "instructions.md", "s.yaml"]) {
      await scene.store.trust((await scene.found()).agent);
      await Deno.writeTextFile(join(folder, file), "\n# changed\n", { append: true });
      assert.match(await refused(scene), /has changed since you trusted it/, file);
    }
  },
);

trustTest("consent is for one place: a copy elsewhere is asked for", async (scene) => {
  await scene.store.trust((await scene.found()).agent);
  const { agent } = await scene.found();
  assert.equal(await scene.store.check({ ...agent, path: "/other/agent.yaml" }), "unknown");
});

trustTest("paths, the user's own agents and those inside need no consent", async (scene) => {
  for (const scope of ["path", "user", "embedded"] as const) {
    await requireTrust(await scene.found(scope), { store: scene.store, trust: false });
  }
  assert.equal(await disk.stat(scene.state), undefined, "nothing was remembered");
});

trustTest("a person is asked with what would run; no is no", async (scene) => {
  const questions: TrustQuestion[] = [];
  const ask = (answer: boolean) => (question: TrustQuestion) => {
    questions.push(question);
    return Promise.resolve(answer);
  };
  const asked = async (answer: boolean) =>
    await requireTrust(await scene.found(), { store: scene.store, trust: false, ask: ask(answer) });
  await assert.rejects(asked(false), /is not trusted yet/);
  await asked(true);
  await asked(false);
  assert.equal(questions.length, 2, "not asked again");
  assert.deepEqual(questions[0], {
    name: "a",
    path: scene.path,
    state: "unknown",
    commands: ["npx -y ${PKG:-x}"],
  });
});

trustTest("trust.json is private, and several agents live in it", async (scene) => {
  const { agent } = await scene.found();
  await scene.store.trust(agent);
  await scene.store.trust({ ...agent, path: "/b", contentHash: "2" });
  const path = join(scene.state, "trust.json");
  assert.equal((await disk.stat(path))?.mode, 0o600);
  assert.equal((await disk.stat(scene.state))?.mode, 0o700);
  assert.deepEqual(JSON.parse(await Deno.readTextFile(path)), {
    v: 1,
    trusted: { [agent.path]: agent.contentHash, "/b": "2" },
  });
  assert.deepEqual(await disk.list(scene.state), ["trust.json"]);
});

trustTest("a damaged trust.json is refused and never written over", async (scene) => {
  await Deno.mkdir(scene.state, { recursive: true });
  const path = join(scene.state, "trust.json");
  for (const content of ["{", '{"v":2,"trusted":{}}', '{"v":1,"trusted":[]}', ""]) {
    await Deno.writeTextFile(path, content);
    await assert.rejects(
      requireTrust(await scene.found(), { store: scene.store, trust: true }),
      (thrown) => thrown instanceof SysError && thrown.code === "INVALID",
    );
    await assert.rejects(scene.store.trust((await scene.found()).agent), SysError);
    assert.equal(await Deno.readTextFile(path), content);
  }
});
