import assert from "node:assert/strict";
import { join } from "node:path";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import { resolvePaths } from "../base/paths.ts";
import { EMBEDDED_AGENTS } from "./embedded.ts";
import { findAgent } from "./find_agent.ts";
import { type InitOptions, initProject } from "./init.ts";
import { coveredBy, requireTrust, TrustStore } from "./trust.ts";

/** A home with a project in it and a PATH with an `npx`. */
async function withHome(
  work: (options: InitOptions, root: string) => Promise<void>,
  more: { [name: string]: string } = {},
): Promise<void> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  try {
    const home = join(root, "home");
    for (const folder of ["home/project", "bin"]) {
      await Deno.mkdir(join(root, folder), { recursive: true });
    }
    await Deno.writeTextFile(join(root, "bin/npx"), "#!/bin/sh\n", { mode: 0o755 });
    const env = { HOME: home, PATH: join(root, "bin"), ...more };
    const paths = resolvePaths(env, 0);
    await work({
      storage: disk,
      cwd: join(home, "project"),
      config: paths.config,
      env,
      trust: new TrustStore(disk, paths.state),
      withMcpExamples: true,
    }, root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** Every file and folder below a place, with the files' texts. */
async function tree(path: string): Promise<{ [path: string]: string }> {
  const found: { [path: string]: string } = {};
  for await (const item of Deno.readDir(path)) {
    const inner = join(path, item.name);
    if (!item.isDirectory) found[inner] = await Deno.readTextFile(inner);
    else Object.assign(found, { [`${inner}/`]: "" }, await tree(inner));
  }
  return found;
}

Deno.test("[A8] init with examples prints the four lines", async () => {
  await withHome(async (options, root) => {
    const { lines, created, kept } = await initProject(options);
    assert.deepEqual(lines, [
      "[init] created ~/.config/rnix/",
      "[init] created .rnix/",
      "[init] added agents/playwright-demo/ with MCP Playwright config",
      "[init] added agents/github-assistant/ with MCP GitHub config",
    ]);
    assert.deepEqual(created, [
      join(root, "home/.config/rnix"),
      join(root, "home/project/.rnix"),
      join(root, "home/project/agents/playwright-demo"),
      join(root, "home/project/agents/github-assistant"),
    ]);
    assert.deepEqual(kept, []);
    const made = Object.keys(await tree(options.cwd)).map((path) => path.slice(options.cwd.length));
    assert.deepEqual(made.sort(), [
      "/.rnix/",
      "/.rnix/agents/",
      "/agents/",
      "/agents/github-assistant/",
      "/agents/github-assistant/agent.yaml",
      "/agents/playwright-demo/",
      "/agents/playwright-demo/agent.yaml",
    ]);
  });
});

Deno.test("[A8] a second init overwrites nothing and says what it kept", async () => {
  await withHome(async (options, root) => {
    await initProject(options);
    const manifest = join(options.cwd, "agents/github-assistant/agent.yaml");
    await Deno.writeTextFile(manifest, "# mine now\n", { append: true });
    await Deno.remove(join(options.cwd, "agents/playwright-demo/agent.yaml"));
    const before = await tree(root);
    const { lines, created } = await initProject(options);
    assert.deepEqual(lines, [
      "[init] kept ~/.config/rnix/",
      "[init] kept .rnix/",
      "[init] kept agents/playwright-demo/",
      "[init] kept agents/github-assistant/",
    ]);
    assert.deepEqual(created, []);
    assert.deepEqual(await tree(root), before);
  });
});

Deno.test("plain init makes the two folders and needs no program", async () => {
  await withHome(async (options) => {
    const plain = { ...options, env: { ...options.env, PATH: "" }, withMcpExamples: false };
    const { lines } = await initProject(plain);
    assert.deepEqual(lines, ["[init] created ~/.config/rnix/", "[init] created .rnix/"]);
    const modes = [options.config, join(options.cwd, ".rnix")].map((path) => disk.stat(path));
    assert.deepEqual((await Promise.all(modes)).map((facts) => facts?.mode), [0o700, 0o755]);
  });
});

Deno.test("with RNIX_HOME the configuration is there, and shown whole", async () => {
  const place = await Deno.realPath(await Deno.makeTempDir());
  try {
    await withHome(async (options) => {
      const { lines } = await initProject({ ...options, withMcpExamples: false });
      assert.equal(lines[0], `[init] created ${place}/r/config/`);
    }, { RNIX_HOME: join(place, "r") });
  } finally {
    await Deno.remove(place, { recursive: true });
  }
});

Deno.test("a missing npx is told before anything is made", async () => {
  await withHome(async (options, root) => {
    const before = await tree(root);
    const bare = { ...options, env: { ...options.env, PATH: "/nowhere" } };
    await assert.rejects(initProject(bare), (thrown) => {
      assert.ok(thrown instanceof SysError && thrown.code === "NOT_FOUND");
      assert.match(thrown.message, /need "npx", which is not on the PATH \(\/nowhere\)/);
      assert.match(thrown.hint ?? "", /install Node.js/);
      return true;
    });
    assert.deepEqual(await tree(root), before);
  });
});

Deno.test("a file where a folder should be is told before anything is made", async () => {
  for (const name of [".rnix", "agents"]) {
    await withHome(async (options, root) => {
      await Deno.writeTextFile(join(options.cwd, name), "mine");
      const before = await tree(root);
      await assert.rejects(initProject(options), /is in the way: it should be a folder/);
      assert.deepEqual(await tree(root), before);
    });
  }
});

Deno.test("what a broken-off init left behind is no obstacle", async () => {
  await withHome(async (options) => {
    const draft = join(options.cwd, "agents/.playwright-demo.new");
    await Deno.mkdir(draft, { recursive: true });
    await Deno.writeTextFile(join(draft, "agent.yaml"), "half of i");
    const { lines } = await initProject(options);
    assert.match(lines[2] ?? "", /added agents\/playwright-demo/);
    assert.equal(await disk.stat(draft), undefined);
  });
});

Deno.test("examples can be run by name at once, with their shipped texts", async () => {
  await withHome(async (options) => {
    await initProject(options);
    const places = {
      ...{ storage: disk, cwd: options.cwd, home: options.env["HOME"], uid: Deno.uid() ?? 0 },
      ...{ config: options.config, embedded: EMBEDDED_AGENTS },
    };
    for (const name of ["playwright-demo", "github-assistant"]) {
      const found = await findAgent(name, places);
      assert.equal(found.scope, "project");
      const covered = coveredBy(found.agent, found.scope);
      assert.ok(covered.length > 0);
      await requireTrust(name, covered, { store: options.trust, trust: false });
      const shipped = EMBEDDED_AGENTS.find((agent) => agent.name === name);
      assert.equal(await Deno.readTextFile(found.agent.path), shipped?.files["agent.yaml"]);
    }
  });
});
