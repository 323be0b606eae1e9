/** The agents that an agent may start, and those that these may: found, trusted and loaded before the run exists, so that nothing of it fails in the middle. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { formatPlace, type Place } from "../manifest/places.ts";
import type { ChildAgent, Family, FamilyMember, LoadedAgent } from "../manifest/agent_manifest.ts";

/** Agents of one family. */
export const FAMILY_MAX = 200;

/** Finds an agent that `from` names. */
export type FindChild = (child: ChildAgent, from: LoadedAgent) => Promise<LoadedAgent>;

/** Every agent that can come to run, or undefined where `agent` starts none. Rejects with what `find` rejects with, saying who named it, and with INVALID (exit 2) for too many. */
export async function familyOf(agent: LoadedAgent, find: FindChild): Promise<Family | undefined> {
  if (agent.manifest.agents.length === 0) return undefined;
  const family: Family = { members: { [agent.path]: memberOf(agent) }, links: {} };
  const left = [agent];
  for (let from = left.shift(); from !== undefined; from = left.shift()) {
    const links: { [name: string]: string } = {};
    for (const child of from.manifest.agents) {
      const found = await named(find(child, from), child, from);
      links[child.name] = found.path;
      if (Object.hasOwn(family.members, found.path)) continue;
      family.members[found.path] = memberOf(found);
      left.push(found);
    }
    family.links[from.path] = links;
    if (Object.keys(family.members).length > FAMILY_MAX) throw tooMany(agent);
  }
  return family;
}

/** The agent that `from` means by a name; undefined where its family doesn't have it. */
export function memberNamed(from: LoadedAgent, name: string): LoadedAgent | undefined {
  const { family, path } = from;
  const links = family?.links[path];
  const member = links !== undefined && Object.hasOwn(links, name)
    ? family?.members[links[name] ?? ""]
    : undefined;
  if (member === undefined || family === undefined) return undefined;
  const own = below(family, member.path);
  return { ...member, ...own === undefined ? {} : { family: own } };
}

/** The part of a family that an agent can come to start; undefined where it starts none. What every child stores is no more than that. */
function below(family: Family, path: string): Family | undefined {
  if (Object.keys(family.links[path] ?? {}).length === 0) return undefined;
  const part: Family = { members: {}, links: {} };
  const left = [path];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const member = family.members[next];
    if (member === undefined || Object.hasOwn(part.members, next)) continue;
    part.members[next] = member;
    const links = family.links[next];
    if (links === undefined) continue;
    part.links[next] = links;
    left.push(...Object.values(links));
  }
  return part;
}

function memberOf(agent: LoadedAgent): FamilyMember {
  const { manifest, path, folder, scriptText, skills, notes } = agent;
  return {
    manifest,
    path,
    folder,
    ...(scriptText === undefined ? {} : { scriptText }),
    ...(skills === undefined ? {} : { skills }),
    ...(notes === undefined ? {} : { notes }),
  };
}

async function named(
  found: Promise<LoadedAgent>,
  { name }: ChildAgent,
  from: LoadedAgent,
): Promise<LoadedAgent> {
  try {
    return await found;
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    const place = placeIn(from, name);
    const where = place === undefined ? "" : `${formatPlace(place)}: `;
    const named = `Agent "${name}", which "${from.manifest.name}" may start`;
    throw new SysError(thrown.code, `${where}${named}: ${thrown.message}`, {
      hint: thrown.hint,
      exitCode: EXIT_USAGE,
    });
  }
}

/** Where an agent names another one: as one of its agents, or in the first node that it does. */
function placeIn({ manifest, placeOf }: LoadedAgent, name: string): Place | undefined {
  const { agents, workflow } = manifest;
  const index = agents.findIndex((agent) => agent.name === name);
  const node = workflow?.nodes.find(({ agent }) => agent === name)?.name ?? "";
  const paths = workflow === undefined
    ? [["agents", index, "manifest"], ["agents", index, "name"], ["agents", index]]
    : [["nodes", node, "agent"], ["nodes", node, "workflow"], ["agents", node, "agent"]];
  return paths.map((path) => placeOf?.(path)).find((place) => place !== undefined);
}

function tooMany({ manifest }: LoadedAgent): SysError {
  return new SysError(
    "INVALID",
    `Agent "${manifest.name}" may come to start more than ${FAMILY_MAX} different agents`,
    { exitCode: EXIT_USAGE },
  );
}
