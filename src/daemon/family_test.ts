/** Which agents an agent can come to start: gathered once, and no more of it handed down than each can reach. */
import assert from "node:assert/strict";
import type { AgentManifest, LoadedAgent } from "../manifest/agent_manifest.ts";
import { FAMILY_MAX, familyOf, memberNamed } from "./family.ts";

/** An agent that may start these. */
function agent(name: string, starts: readonly string[]): LoadedAgent {
  const manifest: AgentManifest = {
    name,
    description: "",
    instructions: "",
    models: { provider: "scripted", preferred: "", timeoutMs: 1, maxTimeoutMs: 1 },
    tools: [],
    agents: starts.map((name) => ({ name, detach: false })),
    budget: {},
    onUnknown: "ask",
  };
  return { manifest, path: `/${name}`, folder: "/" };
}

/** The root of a family of which each member starts those named. */
async function rootOf(starts: { [name: string]: string[] }): Promise<LoadedAgent> {
  const root = agent("root", starts["root"] ?? []);
  const family = await familyOf(
    root,
    ({ name }) => Promise.resolve(agent(name, starts[name] ?? [])),
  );
  return family === undefined ? root : { ...root, family };
}

Deno.test("every agent that can come to run is found once, also in a circle", async () => {
  const root = await rootOf({ root: ["a", "b"], a: ["b", "root"], b: ["b"] });
  assert.deepEqual(Object.keys(root.family?.members ?? {}), ["/root", "/a", "/b"]);
  assert.equal(memberNamed(root, "a")?.path, "/a");
  assert.equal(memberNamed(root, "c"), undefined);
  assert.equal((await rootOf({})).family, undefined);
});

Deno.test("a child has no more of the family than it can come to start", async () => {
  const root = await rootOf({ root: ["a", "leaf"], a: ["b"], b: ["b", "leaf"] });
  assert.equal(memberNamed(root, "leaf")?.family, undefined);
  const a = memberNamed(root, "a");
  assert.ok(a !== undefined);
  assert.deepEqual(Object.keys(a.family?.members ?? {}).sort(), ["/a", "/b", "/leaf"]);
  const b = memberNamed(a, "b");
  assert.ok(b !== undefined);
  assert.deepEqual(b.family?.links, { "/b": { b: "/b", leaf: "/leaf" }, "/leaf": {} });
  assert.equal(memberNamed(b, "b")?.path, "/b");
});

Deno.test("a family without end is refused", async () => {
  const root = agent("0", ["1"]);
  const find = ({ name }: { name: string }) =>
    Promise.resolve(agent(name, [String(Number(name) + 1)]));
  await assert.rejects(familyOf(root, find), new RegExp(`more than ${FAMILY_MAX} different`));
});
