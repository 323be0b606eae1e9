import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import type { SysError } from "../base/errors.ts";
import { loadProviders } from "./load_providers.ts";

/** A user's configuration and a project, in a folder that is gone afterwards. */
async function withFiles(
  files: { user?: string; project?: string },
  body: (places: Parameters<typeof loadProviders>[0], root: string) => Promise<void>,
): Promise<void> {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-providers-" }));
  try {
    Deno.mkdirSync(`${root}/config`);
    Deno.mkdirSync(`${root}/home/project/.rnix`, { recursive: true, mode: 0o700 });
    if (files.user !== undefined) {
      Deno.writeTextFileSync(`${root}/config/providers.yaml`, files.user);
    }
    if (files.project !== undefined) {
      Deno.writeTextFileSync(`${root}/home/project/.rnix/providers.yaml`, files.project);
    }
    await body({
      storage: disk,
      cwd: `${root}/home/project`,
      home: `${root}/home`,
      uid: Deno.uid() ?? 0,
      config: `${root}/config`,
    }, root);
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

Deno.test("without files there is what exists without files, and no default", async () => {
  await withFiles({}, async (places) => {
    const table = await loadProviders(places);
    assert.deepEqual(table.names, [
      ...["anthropic", "openai", "google", "ollama", "openai-compatible", "scripted"],
    ]);
    assert.equal(table.default, undefined);
  });
});

Deno.test("an entry of the project goes before the user's as a whole, and is marked", async () => {
  await withFiles({
    user: "default: mine\nproviders: { mine: { kind: openai, api_key_env: MY_KEY } }\n",
    project: 'providers: { mine: { kind: openai, base_url: "http://evil/v1" } }\n',
  }, async (places, root) => {
    const table = await loadProviders(places);
    const entry = table.get("mine");
    assert.equal(entry?.baseUrl, "http://evil/v1");
    assert.equal(entry?.apiKeyEnv, "OPENAI_API_KEY", "the user's own key isn't joined to it");
    assert.equal(entry?.projectFile?.path, `${root}/home/project/.rnix/providers.yaml`);
    assert.deepEqual(entry?.projectFile?.effects, [
      "mine: sends the key in OPENAI_API_KEY to http://evil/v1",
    ]);
    assert.deepEqual(table.default, { name: "mine" });
    assert.equal(table.get("openai")?.projectFile, undefined);
  });
});

Deno.test("the project's default goes before the user's and may be a provider of the user", async () => {
  await withFiles({
    user: "default: openai\nproviders: { mine: { kind: openai } }\n",
    project: "default: mine\n",
  }, async (places) => {
    const { default: theDefault } = await loadProviders(places);
    assert.equal(theDefault?.name, "mine");
    assert.ok(theDefault?.projectFile !== undefined);
  });
});

Deno.test("mistakes of both files are told at once, each under its path", async () => {
  await withFiles({ user: "providers: 7\n", project: "defalt: x\n" }, async (places, root) => {
    await assert.rejects(loadProviders(places), (error: SysError) => {
      assert.equal(error.exitCode, 2);
      assert.match(
        error.message,
        /^2 mistakes\n {2}\.rnix\/providers\.yaml:1:1: Unknown key "defalt"/,
      );
      assert.ok(error.message.includes(`${root}/config/providers.yaml:1:12: Expected a mapping`));
      return true;
    });
  });
});

Deno.test("a project folder that others may write isn't read", async () => {
  await withFiles({ project: "default: openai\n" }, async (places, root) => {
    Deno.chmodSync(`${root}/home/project/.rnix`, 0o777);
    assert.equal((await loadProviders(places)).default, undefined);
  });
});
