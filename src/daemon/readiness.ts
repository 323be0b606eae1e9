/**
 * Whether an agent could be run as things are: what a run does before it starts, done for the agent and all that it may start, with what each step throws as a fault.
 *
 * The steps are those of `readyAgent`, by the same functions. Nothing is asked, started or written.
 */
import { systemClock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import type { ReadinessFault, ReadinessRequest } from "../base/readiness.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import type { AgentSource } from "./agent_source.ts";
import { readyModels, requirePrices } from "./model_parts.ts";
import { readyServers } from "./run_parts.ts";

/** All that is in the way; nothing where a run would start. */
export async function readinessOf(
  agents: AgentSource,
  { of, client }: ReadinessRequest,
): Promise<ReadinessFault[]> {
  let agent: LoadedAgent;
  try {
    agent = await agents.look(of, client, undefined);
  } catch (thrown) {
    return [{ agent: of, path: of, part: "agents", ...told(thrown) }];
  }
  const below = Object.values(agent.family?.members ?? {})
    .filter(({ path }) => path !== agent.path);
  return [agent, ...below].flatMap((each) => faultsOf(each, client));
}

function faultsOf(agent: LoadedAgent, client: ReadinessRequest["client"]): ReadinessFault[] {
  const facts = { clientEnv: client.env, cwd: client.cwd, model: undefined };
  const faults: ReadinessFault[] = [];
  const step = (part: ReadinessFault["part"], work: () => void) => {
    try {
      work();
    } catch (thrown) {
      faults.push({ agent: agent.manifest.name, path: agent.path, part, ...told(thrown) });
    }
  };
  step("servers", () => readyServers(agent, facts));
  step("models", () => {
    const models = readyModels(agent, facts);
    models.make({ clock: systemClock, redact: (text) => text, fetch }).close();
    step("budget", () => requirePrices(models, agent.manifest.budget));
  });
  return faults;
}

/** Throws what is no failure of the agent. */
function told(thrown: unknown): Pick<ReadinessFault, "message" | "hint"> {
  if (!(thrown instanceof SysError)) throw thrown;
  const { message, hint } = thrown;
  return { message, ...hint === undefined ? {} : { hint } };
}
