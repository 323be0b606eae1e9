/** What a run of each agent would be refused for that a look at its files doesn't show: asked of the code that makes runs ready. */
import type { ReadinessFault } from "../../base/readiness.ts";
import type { CheckedAgent, CheckFault } from "../../manifest/check.ts";
import type { Context } from "../command.ts";

/** Faults of agents whose manifests are whole; those of agents that one may only come to start are warnings. */
export async function readyFaults(
  agents: readonly CheckedAgent[],
  context: Context,
): Promise<CheckFault[]> {
  const whole = agents.filter(({ loaded }) => loaded !== undefined);
  if (whole.length === 0) return [];
  const system = await context.system();
  const client = { cwd: context.world.cwd, env: context.env };
  const paths = new Set(whole.map(({ loaded }) => loaded?.path));
  const faults: CheckFault[] = [];
  for (const checked of whole) {
    const found = await system.readiness({ of: referenceTo(checked), client });
    faults.push(...found.flatMap((fault) => toldOf(fault, checked, paths)));
  }
  return faults;
}

/** As a command line names it. */
export function referenceTo({ name, path, scope }: CheckedAgent): string {
  return scope === "path" ? path : name;
}

function toldOf(
  { agent, path, part, message, hint }: ReadinessFault,
  { name, loaded }: CheckedAgent,
  paths: ReadonlySet<string | undefined>,
): CheckFault[] {
  const more = hint === undefined ? {} : { hint };
  const isOwn = part === "agents" || path === loaded?.path;
  // Its servers are looked at one by one, and what is looked at by itself is told there.
  if (isOwn && part !== "servers") {
    return mistakesIn(message).map((message) => ({
      severity: "fault",
      agent: name,
      message,
      ...more,
    }));
  }
  if (isOwn || paths.has(path)) return [];
  const severity = loaded?.manifest.workflow === undefined ? "warning" : "fault";
  return mistakesIn(message).map((each) => ({
    severity,
    agent: name,
    message: `Agent "${agent}", which it may start: ${each}`,
    ...more,
  }));
}

/** One each of several mistakes that were told at once. */
function mistakesIn(message: string): string[] {
  const [head = "", ...lines] = message.split("\n");
  return /^\d+ mistakes$/.test(head) ? lines.map((line) => line.trim()) : [message];
}
