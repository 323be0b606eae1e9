import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { disk } from "../base/disk.ts";
import type { TrustQuestion } from "../base/client_facts.ts";
import { SysError } from "../base/errors.ts";
import type { FoundAgent } from "./find_agent.ts";
import { loadAgentFile } from "./load_agent.ts";
import { agreeTo, coveredBy, requireTrust, type TrustOptions, TrustStore } from "./trust.ts";

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

/** What a run of it by name asks for. */
async function require(
  scene: Scene,
  options: Omit<TrustOptions, "store">,
  scope?: FoundAgent["scope"],
): Promise<void> {
  const { agent, ...found } = await scene.found(scope);
  await requireTrust('Agent "a"', coveredBy(agent, found.scope), {
    store: scene.store,
    ...options,
  });
}

async function refused(scene: Scene): Promise<string> {
  const error = await require(scene, { trust: false }).then(() => undefined, (e) => e);
  assert.ok(error instanceof SysError && error.code === "UNTRUSTED", String(error));
  assert.equal(error.exitCode, 2);
  assert.match(error.hint ?? "", /--trust/);
  return error.message;
}

trustTest(
  "[N10] an agent of the project runs only after consent, which is remembered",
  async (scene) => {
    assert.match(await refused(scene), /Agent "a" needs 3 files of this project that are not/);
    await require(scene, { trust: true });
    await require(scene, { trust: false });
    const another = new TrustStore(disk, scene.state);
    const { agent, scope } = await scene.found();
    assert.deepEqual(await another.untrusted(coveredBy(agent, scope)), []);
  },
);

trustTest(
  "[N10] a change of manifest, instructions or script needs consent anew, and the file that changed is named alone",
  async (scene) => {
    const folder = dirname(scene.path);
    for (const file of ["agent.yaml", "instructions.md", "s.yaml"]) {
      await require(scene, { trust: true });
      await Deno.writeTextFile(join(folder, file), "\n# changed\n", { append: true });
      const [head, line = "", ...more] = (await refused(scene)).split("\n");
      assert.match(head ?? "", /^Agent "a" needs a file of this project/);
      assert.ok(line.startsWith(`  ${join(folder, file)} (changed): `), line);
      assert.deepEqual(more, []);
    }
  },
);

trustTest("a refusal names every file, each new or changed", async (scene) => {
  await require(scene, { trust: true });
  const folder = dirname(scene.path);
  await Deno.writeTextFile(scene.path, "description: more\n", { append: true });
  await Deno.rename(join(folder, "s.yaml"), join(folder, "t.yaml"));
  const text = await Deno.readTextFile(scene.path);
  await Deno.writeTextFile(scene.path, text.replace("s.yaml", "t.yaml"));
  assert.equal(
    await refused(scene),
    `Agent "a" needs 2 files of this project that are not trusted as they are
  ${scene.path} (changed): what runs, and with what
  ${join(folder, "t.yaml")} (new): what the scripted model does`,
  );
});

trustTest("what --trust has covered is told once, by file", async (scene) => {
  const told: string[] = [];
  const notice = (message: string) => void told.push(message);
  await require(scene, { trust: true, notice });
  await require(scene, { trust: true, notice });
  const folder = dirname(scene.path);
  const files = ["agent.yaml", "instructions.md", "s.yaml"].map((name) => join(folder, name));
  assert.deepEqual(told, [
    `Trusted from now on: ${files.map((file) => `${file} (new)`).join(", ")}`,
  ]);
});

trustTest("consent is for one place: a copy elsewhere is asked for", async (scene) => {
  await require(scene, { trust: true });
  const [file] = coveredBy((await scene.found()).agent, "project");
  assert.ok(file !== undefined);
  assert.equal(await scene.store.check(file), "trusted");
  assert.equal(await scene.store.check({ ...file, path: "/other/agent.yaml" }), "new");
});

trustTest("paths, the user's own agents and those inside need no consent", async (scene) => {
  for (const scope of ["path", "user", "embedded"] as const) {
    await require(scene, { trust: false }, scope);
  }
  assert.equal(await disk.stat(scene.state), undefined, "nothing was remembered");
});

trustTest("a person is asked once with what would run; no is no", async (scene) => {
  const questions: TrustQuestion[] = [];
  const ask = (answer: boolean) => (question: TrustQuestion) => {
    questions.push(question);
    return Promise.resolve(answer);
  };
  const asked = (answer: boolean) => require(scene, { trust: false, ask: ask(answer) });
  await assert.rejects(asked(false), /not trusted as they are/);
  await asked(true);
  await asked(false);
  assert.equal(questions.length, 2, "not asked again");
  assert.equal(questions[0]?.subject, 'Agent "a"');
  assert.deepEqual(questions[0]?.files[0], {
    path: scene.path,
    state: "new",
    decides: "what runs, and with what",
    effects: ["starts npx -y ${PKG:-x}"],
  });
  assert.equal(questions[0]?.files.length, 3);
});

trustTest("trust.json is private, and several files live in it", async (scene) => {
  await scene.store.trust([{ path: "/a", contentHash: "1" }]);
  await scene.store.trust([{ path: "/b", contentHash: "2" }, { path: "/c", contentHash: "3" }]);
  const path = join(scene.state, "trust.json");
  assert.equal((await disk.stat(path))?.mode, 0o600);
  assert.equal((await disk.stat(scene.state))?.mode, 0o700);
  assert.deepEqual(JSON.parse(await Deno.readTextFile(path)), {
    v: 2,
    trusted: { "/a": "1", "/b": "2", "/c": "3" },
  });
  assert.deepEqual(await disk.list(scene.state), ["trust.json"]);
});

trustTest("of an older trust.json the files count whose hash says the same", async (scene) => {
  await Deno.mkdir(scene.state, { recursive: true });
  const trusted = { [scene.path]: "h", "/p/.rnix/mcp.yaml": "m" };
  await Deno.writeTextFile(join(scene.state, "trust.json"), JSON.stringify({ v: 1, trusted }));
  const { store } = scene;
  assert.equal(await store.check({ path: "/p/.rnix/mcp.yaml", contentHash: "m" }), "trusted");
  const { agent } = await scene.found();
  const left = await agreeTo("a", coveredBy(agent, "project"), { store, trust: false });
  assert.deepEqual(left.map(({ state }) => state), ["new", "new", "new"]);
  assert.equal(await store.isKnown(scene.path), true, "a resume asks for it as well");
  await store.trust([{ path: "/other", contentHash: "o" }]);
  assert.equal(await store.isKnown(scene.path), true);
});

trustTest("a damaged trust.json is refused and never written over", async (scene) => {
  await Deno.mkdir(scene.state, { recursive: true });
  const path = join(scene.state, "trust.json");
  for (const content of ["{", '{"v":3,"trusted":{}}', '{"v":1,"trusted":[]}', ""]) {
    await Deno.writeTextFile(path, content);
    await assert.rejects(
      require(scene, { trust: true }),
      (thrown) => thrown instanceof SysError && thrown.code === "INVALID",
    );
    await assert.rejects(scene.store.trust([{ path: "/a", contentHash: "1" }]), SysError);
    assert.equal(await Deno.readTextFile(path), content);
  }
});
