/** The shipped agents: each loads, is inside the program just as it is on disk, and keeps to the rules that shipped agents have. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { disk } from "../src/base/disk.ts";
import { parseScript } from "../src/llm/scripted/script.ts";
import { EMBEDDED_AGENTS, EXAMPLE_AGENTS } from "../src/manifest/embedded.ts";
import { expandServers } from "../src/manifest/expand.ts";
import type { LoadedAgent } from "../src/manifest/agent_manifest.ts";
import { loadAgentFile, loadEmbeddedAgent, loadEmbeddedPath } from "../src/manifest/load_agent.ts";

const AGENTS = fileURLToPath(new URL("../agents", import.meta.url));

/** An agent without how its files are called. */
function texts({ placeOf: _, scriptFile: _file, ownFiles = [], ...agent }: LoadedAgent) {
  return { ...agent, own: ownFiles.map(({ part, contentHash }) => [part, contentHash]) };
}

Deno.test("every agent under agents/ loads, and from inside the program it is the same", async () => {
  const names = await disk.list(AGENTS);
  assert.deepEqual(names, EMBEDDED_AGENTS.map(({ name }) => name));
  for (const embedded of EMBEDDED_AGENTS) {
    const folder = join(AGENTS, embedded.name);
    assert.deepEqual(filesBelow(folder), Object.keys(embedded.files).sort());
    const onDisk = await loadAgentFile(disk, join(folder, "agent.yaml"));
    const inside = await loadEmbeddedAgent(embedded);
    assert.equal(onDisk.manifest.name, embedded.name);
    const place = { path: `embedded:${embedded.name}`, folder: `embedded:${embedded.name}` };
    assert.deepEqual(texts(inside), { ...texts(onDisk), ...place });
    for (const { manifest: child = "" } of inside.manifest.agents) {
      const below = await loadEmbeddedPath(join(place.path, child), EMBEDDED_AGENTS);
      const beside = await loadAgentFile(disk, join(folder, child, "agent.yaml"));
      assert.deepEqual(below.manifest, beside.manifest);
    }
  }
});

/** Paths of all files in a folder and those below it. */
function filesBelow(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesBelow(join(folder, name)).map((below) => `${name}/${below}`) : [name]
  ).sort();
}

Deno.test("scripts of shipped agents can be played", async () => {
  for (const embedded of EMBEDDED_AGENTS) {
    for (const file of Object.keys(embedded.files)) {
      if (!file.endsWith("agent.yaml")) continue;
      const folder = file.slice(0, -"agent.yaml".length);
      const { manifest, scriptText } = await loadEmbeddedAgent(embedded, {}, folder);
      assert.equal(manifest.models.provider === "scripted", scriptText !== undefined);
      if (scriptText !== undefined) parseScript(`${embedded.name}/${file}`, scriptText);
    }
  }
});

Deno.test("servers of shipped agents are pinned, patient at their start, and bound to no folder", async () => {
  for (const embedded of EMBEDDED_AGENTS) {
    const { manifest } = await loadEmbeddedAgent(embedded);
    if (manifest.workflow !== undefined) continue;
    assert.ok(manifest.servers !== undefined && manifest.servers.length > 0);
    for (const server of manifest.servers) {
      assert.ok(server.transport === "stdio");
      assert.equal(server.command, "npx");
      assert.match(server.args[1] ?? "", /^@[a-z-]+\/[a-z-]+@\d+\.\d+\.\d+$/);
      assert.ok(server.startupTimeoutMs >= 120_000, "a cold start downloads the server");
      assert.equal(server.cwd, undefined, "an embedded agent has no folder");
    }
  }
});

Deno.test("the demo needs no variable at all", async () => {
  const demo = EMBEDDED_AGENTS.find(({ name }) => name === "demo");
  assert.ok(demo !== undefined);
  const { manifest, folder } = await loadEmbeddedAgent(demo);
  const { ready } = expandServers(manifest.servers ?? [], {
    ...{ clientEnv: {}, manifestFolder: folder, runFolder: "/project" },
  });
  const [only] = ready.map(({ expanded }) => expanded);
  assert.ok(ready.length === 1 && only?.transport === "stdio");
  assert.deepEqual([only.cwd, only.args.at(-1)], ["/project", "."]);
  assert.ok(!EXAMPLE_AGENTS.some(({ name }) => name === "demo"));
});
