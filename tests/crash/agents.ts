/** The agents and workflows of a scenario as loaded manifests: each agent may start every one, a workflow those of its nodes. And the programs that they run, as the daemon makes them. */
import { programOf, type RunProgram } from "../../src/daemon/program_of.ts";
import type {
  AgentManifest,
  Family,
  FamilyMember,
  LoadedAgent,
} from "../../src/manifest/agent_manifest.ts";
import { parseManifest } from "../../src/manifest/parse_manifest.ts";
import { Problems } from "../../src/manifest/problems.ts";
import { withParameters } from "../../src/manifest/workflow/parameters.ts";
import type { Scenario } from "./scenario.ts";
import type { AgentFacts } from "./world.ts";

/** Name of the agent that a scenario's own run is of. */
export const ROOT = "tester";

/** What an agent or a workflow does. */
export function scriptOf(scenario: Scenario, name: string): AgentFacts {
  return (name === ROOT ? scenario : scenario.agents?.[name]) ?? { turns: [] };
}

const LOADED = new WeakMap<Scenario, Map<string, LoadedAgent>>();
const PROGRAMS = new WeakMap<LoadedAgent, Promise<RunProgram>>();

/** An agent with the family of all. One that the scenario doesn't name is the root's. */
export function scriptedAgent(scenario: Scenario, name: string): LoadedAgent {
  const loaded = LOADED.get(scenario) ?? loadAll(scenario);
  LOADED.set(scenario, loaded);
  const agent = loaded.get(name) ?? loaded.get(ROOT);
  if (agent === undefined) throw new Error("The scenario has no root");
  return agent;
}

/** What an agent runs. It is made once: programs are pure. */
export function programFor(scenario: Scenario, name: string): Promise<RunProgram> {
  const agent = scriptedAgent(scenario, name);
  const program = PROGRAMS.get(agent) ?? programOf(agent);
  PROGRAMS.set(agent, program);
  return program;
}

function loadAll(scenario: Scenario): Map<string, LoadedAgent> {
  const all = [ROOT, ...Object.keys(scenario.agents ?? {})];
  const members = Object.fromEntries(all.map((name) => [name, memberOf(scenario, name)]));
  const links = Object.fromEntries(
    Object.keys(scenario.agents ?? {}).map((name) => [name, name]),
  );
  const family: Family = {
    members,
    links: Object.fromEntries(all.map((name) => [name, links])),
  };
  return new Map(
    Object.entries(members).map(([name, member]) => [
      name,
      withParameters({ ...member, family }, {}),
    ]),
  );
}

function memberOf(scenario: Scenario, name: string): FamilyMember {
  const { workflow } = scriptOf(scenario, name);
  const manifest = workflow === undefined
    ? agentManifest(scenario, name)
    : workflowManifest(name, workflow);
  return { path: name, folder: "/", manifest: { ...manifest, onUnknown: scenario.onUnknown } };
}

function agentManifest({ agents = {}, onUnknown, contextWindow }: Scenario, name: string) {
  const models = {
    provider: "scripted",
    preferred: "fixed",
    timeoutMs: 1_000,
    maxTimeoutMs: 1_000,
    ...(contextWindow === undefined ? {} : { contextWindow }),
  };
  return {
    name,
    description: "",
    instructions: "system",
    models,
    tools: [],
    agents: Object.entries(agents).map(([name, { detach = false }]) => ({ name, detach })),
    budget: {},
    onUnknown,
  } satisfies AgentManifest;
}

function workflowManifest(name: string, text: string): AgentManifest {
  const problems = new Problems();
  const whole = `kind: workflow\nname: ${name}\n${text}`;
  const { manifest } = parseManifest(
    whole,
    { file: name, instructionsBeside: undefined },
    problems,
  );
  if (manifest === undefined) throw new Error(JSON.stringify(problems.list));
  return manifest;
}
