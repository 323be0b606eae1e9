/**
 * From a loaded agent to the parts that the kernel runs: servers expanded with the client's environment, model, redaction, trace.
 *
 * Everything that can be wrong with the surroundings (unset variables, a missing key) is found in `readyAgent`, before a run exists.
 */
import type { AgentPrompt } from "../agent/agent_program.ts";
import { type Budget, TURNS_DEFAULT } from "../base/budget.ts";
import type { Clock } from "../base/clock.ts";
import type { Guard } from "../base/guard.ts";
import { createRedaction, type Redaction } from "../base/redaction.ts";
import type { Storage } from "../base/storage.ts";
import { VERSION } from "../base/version.ts";
import { McpMountDriver } from "../devices/mcp/mcp_driver.ts";
import { PING_RULES, type PingRules } from "../devices/mcp/mount_state.ts";
import type { ServerPool } from "../devices/mcp/server_pool.ts";
import { agentBinding } from "../kernel/agent_tools.ts";
import type { ChildPort } from "../kernel/children.ts";
import { createIntake } from "../kernel/intake.ts";
import type { RunParts } from "../kernel/launch.ts";
import type { MountSpec } from "../kernel/mount.ts";
import type { ToolBinding } from "../kernel/tool_table.ts";
import { OUTPUT_TOKENS_MAX } from "../manifest/manifest_schema.ts";
import type { McpServerLaunch } from "../mcp/launch.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import type { WaysOut } from "../base/ways_out.ts";
import { literalSecretsOf, proxyPasswords } from "../manifest/secret_values.ts";
import { telemetrySecrets } from "../telemetry/settings.ts";
import { type ExpandedServers, expandServers, type ReadyServer } from "../manifest/expand.ts";
import { type ReadyModels, readyModels } from "./model_parts.ts";
import { serverLaunch } from "./server_launch.ts";
import { memberNamed } from "./family.ts";
import { ownMounts } from "./own_mounts.ts";
import { programOf, type ProgramState } from "./program_of.ts";
import { TraceFile } from "./trace_file.ts";

export type AgentParts = RunParts<ProgramState, AgentPrompt>;

/** An agent with its surroundings filled in, ready to become a run. */
export interface ReadyAgent {
  agent: LoadedAgent;
  modelName: string;
  /** Models without a known price. */
  unpriced: string[];
  budget: Budget;
  redaction: Redaction;
  parts(facts: { folder: string }): Promise<AgentParts>;
}

export interface ReadyFacts {
  storage: Storage;
  clock: Clock;
  guard: () => Promise<Guard>;
  clientEnv: { [name: string]: string };
  /** The run's working folder. */
  cwd: string;
  model: string | undefined;
  /** How a silent server is asked whether it lives, as far as `config.yaml` says. */
  ping: Partial<PingRules>;
  /** The servers of its tree. */
  servers: ServerPool;
  /** Out to the model. */
  ways: WaysOut;
  /** What its children are started through. */
  children: ChildPort;
  /** Told to who watches the run. */
  notice: (message: string) => void;
}

/** An agent's servers with the client's environment. Throws INVALID (exit 3) with all that required ones lack. */
export function readyServers(
  { manifest, folder, placeOf }: LoadedAgent,
  { clientEnv, cwd }: Pick<ReadyFacts, "clientEnv" | "cwd">,
): ExpandedServers {
  const facts = { clientEnv, manifestFolder: folder, runFolder: cwd, placeOf };
  return expandServers(manifest.servers ?? [], facts);
}

/** Throws a SysError (exit 2 or 3) naming all that is missing. */
export function readyAgent(agent: LoadedAgent, facts: ReadyFacts): ReadyAgent {
  const { manifest } = agent;
  const servers = readyServers(agent, facts);
  const models = readyModels(agent, facts);
  const redaction = redactionOf(agent, { models, servers: servers.ready }, facts);
  const parts = async ({ folder }: { folder: string }): Promise<AgentParts> => {
    for (const message of agent.notices ?? []) facts.notice(message);
    // Made before anything is opened: a bad script fails here.
    const way = facts.ways.open(facts.clientEnv, facts.notice);
    const { close: closeModels, ...ports } = models.make({
      clock: facts.clock,
      redact: (text) => redaction.sink.redact(text),
      fetch: way.fetch,
    });
    const trace = await TraceFile.open({
      storage: facts.storage,
      folder,
      redactor: redaction.sink,
    });
    const driver = new McpMountDriver({
      storage: facts.storage,
      clock: facts.clock,
      keeper: facts.guard,
      redact: (text) => redaction.sink.redact(text),
      clientInfo: { name: "rnix", version: VERSION },
      pool: facts.servers,
      ping: { ...PING_RULES, ...facts.ping },
      onWarning: (server, message) => facts.notice(`${server}: ${message}`),
    });
    return {
      program: await programOf(agent),
      specs: servers.ready.map((server) => mountSpec(server, `${folder}/mounts`)),
      unavailable: servers.failed.map(({ config, error }) => ({
        server: config.name,
        required: config.required,
        error,
      })),
      driver,
      own: await ownMounts(agent, { ...facts, secrets: redaction.intake }),
      children: facts.children,
      agents: agentTools(agent),
      ...ports,
      intake: createIntake(redaction.intake),
      redactor: redaction.sink,
      trace,
      onUnknown: manifest.onUnknown,
      close() {
        trace.close();
        closeModels();
        way.close();
      },
    };
  };
  return {
    agent,
    modelName: models.name,
    unpriced: models.unpriced,
    budget: { turns: TURNS_DEFAULT, ...manifest.budget },
    redaction,
    parts,
  };
}

function redactionOf(
  agent: LoadedAgent,
  { models, servers }: { models: ReadyModels; servers: readonly ReadyServer[] },
  { clientEnv }: ReadyFacts,
): Redaction {
  return createRedaction({
    intake: [
      ...models.secrets,
      ...servers.flatMap(({ expanded }) => expanded.secrets),
      ...telemetrySecrets(clientEnv),
      ...proxyPasswords(clientEnv),
    ],
    sinkOnly: [
      ...models.sinkOnly,
      ...servers.flatMap(({ expanded }) => expanded.sinkOnly),
      ...literalSecretsOf(agent),
    ],
  });
}

/** The agents that it may start, as tools. */
export function agentTools(agent: LoadedAgent): ToolBinding[] {
  // What a node answers is another node's input: whole.
  const limit = agent.manifest.workflow === undefined ? OUTPUT_TOKENS_MAX : undefined;
  return agent.manifest.agents.map(({ name, detach }) =>
    agentBinding({
      name,
      description: memberNamed(agent, name)?.manifest.description ?? "",
      detach,
      outputTokensMax: limit,
    })
  );
}

function mountSpec(ready: ReadyServer, logFolder: string): MountSpec<McpServerLaunch> {
  const { name, required, rules, outputTokensMax } = ready.config;
  return {
    server: name,
    required,
    rules,
    outputTokensMax,
    config: serverLaunch(ready, `${logFolder}/${name}.stderr.log`),
  };
}
