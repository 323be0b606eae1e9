/** The agents of a scenario as loaded manifests: each may start every one. */
import type { Family, FamilyMember, LoadedAgent } from "../../src/manifest/agent_manifest.ts";
import type { Scenario } from "./scenarios.ts";

/** Name of the agent that a scenario's own run is of. */
export const ROOT = "tester";

/** The root, with the family of all. */
export function scriptedAgents({ agents = {}, workflow, onUnknown }: Scenario): LoadedAgent {
  const names = Object.keys(agents);
  const member = (name: string): FamilyMember => ({
    path: name,
    folder: "/",
    manifest: {
      name,
      description: "",
      instructions: "",
      models: { provider: "scripted", preferred: "fixed", timeoutMs: 1_000, maxTimeoutMs: 1_000 },
      tools: [],
      agents: names.map((name) => ({ name, detach: agents[name]?.detach ?? false })),
      budget: {},
      onUnknown,
      ...(workflow === undefined || name !== ROOT ? {} : { workflow }),
    },
  });
  const links = Object.fromEntries(names.map((name) => [name, name]));
  const all = [ROOT, ...names];
  const family: Family = {
    members: Object.fromEntries(all.map((name) => [name, member(name)])),
    links: Object.fromEntries(all.map((name) => [name, links])),
  };
  return { ...member(ROOT), family };
}
