/**
 * From how a server is named on the command line to how it is reached, with the environment of the client filled in as for a run.
 *
 * What stands on the command line is taken as it stands there (the shell has expanded it), and is consent; a server of the project's `mcp.yaml` needs trust like one that a manifest takes from there.
 */
import type { ToolRules } from "../base/effect.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { nearest } from "../base/nearest.ts";
import type { ClientFacts } from "../base/operations.ts";
import { createRedaction, type Redaction } from "../base/redaction.ts";
import type { ServerReference } from "../base/server_operations.ts";
import type { ServerConfig } from "../manifest/agent_manifest.ts";
import { expandServers } from "../manifest/expand.ts";
import type { PlaceOf } from "../manifest/places.ts";
import { loadServers } from "../manifest/load_servers.ts";
import {
  REQUEST_TIMEOUT_IN_ALL_MS,
  REQUEST_TIMEOUT_MS,
  STARTUP_TIMEOUT_MS,
} from "../manifest/manifest_schema.ts";
import { coveredFile, requireTrust, type TrustStore } from "../manifest/trust.ts";
import type { McpServerLaunch } from "../mcp/launch.ts";
import {
  type AgentSource,
  type AgentSourceDeps,
  type Consent,
  trustOptions,
} from "./agent_source.ts";
import { serverLaunch } from "./server_launch.ts";

export interface ServerSourceDeps extends AgentSourceDeps {
  agents: AgentSource;
  trust: TrustStore;
}

/** A server that can be connected to, and what nobody is to be shown of it. */
export interface NamedServer {
  launch: McpServerLaunch;
  redaction: Redaction;
  /** What the configuration says of its tools. */
  rules: ToolRules;
}

interface Found {
  config: ServerConfig;
  /** Where its relative paths start from, unless its own file says otherwise. */
  folder: string;
  placeOf?: PlaceOf | undefined;
}

/** Throws NOT_FOUND, INVALID, UNTRUSTED (exit 2) where there is no such server, and what `expandServers` throws (exit 3). */
export async function namedServer(
  deps: ServerSourceDeps,
  reference: ServerReference,
  { client, consent }: { client: ClientFacts; consent: Consent },
): Promise<NamedServer> {
  const { config, folder, placeOf } = await found(deps, reference, { client, consent });
  const { ready: [ready] } = expandServers([{ ...config, required: true }], {
    clientEnv: client.env,
    manifestFolder: folder,
    runFolder: client.cwd,
    placeOf,
  });
  if (ready === undefined) throw new SysError("INTERNAL", `Server "${config.name}" got lost`);
  const { secrets, sinkOnly } = ready.expanded;
  return {
    launch: serverLaunch(ready),
    redaction: createRedaction({ intake: secrets, sinkOnly }),
    rules: config.rules,
  };
}

async function found(
  deps: ServerSourceDeps,
  reference: ServerReference,
  facts: { client: ClientFacts; consent: Consent },
): Promise<Found> {
  const folder = facts.client.cwd;
  switch (reference.kind) {
    case "configured":
      return { ...await configured(deps, reference.name, facts), folder };
    case "agent":
      return await ofAgent(deps, reference, facts);
    case "url":
      return { config: atAddress(reference), folder };
    case "command":
      return { config: onStdio(reference), folder };
  }
}

async function configured(
  { storage, config, uid, trust: store }: ServerSourceDeps,
  name: string,
  { client, consent }: { client: ClientFacts; consent: Consent },
): Promise<Omit<Found, "folder">> {
  const home = client.env["HOME"];
  const table = await loadServers({ storage, cwd: client.cwd, home, uid, config });
  table.requireSound();
  const known = table.get(name);
  if (known === undefined) {
    throw new SysError("NOT_FOUND", table.faultOf(name) ?? `Unknown server "${name}"`, {
      exitCode: EXIT_USAGE,
      hint: "Or give its URL, --agent MANIFEST, or its command after --",
    });
  }
  const covered = known.projectFile === undefined ? [] : [coveredFile(known.projectFile)];
  await requireTrust(`Server "${name}"`, covered, trustOptions(store, consent));
  const { config: found, placeOf } = known;
  return { config: found, placeOf: (path, piece) => placeOf?.(path.slice(1), piece) };
}

async function ofAgent(
  { agents }: ServerSourceDeps,
  { manifest, server }: Extract<ServerReference, { kind: "agent" }>,
  { client, consent }: { client: ClientFacts; consent: Consent },
): Promise<Found> {
  const { agent } = await agents.find(manifest, client, consent);
  const { name, servers = [] } = agent.manifest;
  const config = servers.find((each) => each.name === server);
  if (config !== undefined) return { config, folder: agent.folder, placeOf: agent.placeOf };
  const names = servers.map((each) => each.name);
  const close = nearest(server, names);
  throw new SysError("NOT_FOUND", `Agent "${name}" has no server "${server}"`, {
    exitCode: EXIT_USAGE,
    hint: names.length === 0
      ? "It has none"
      : close === undefined
      ? `It has ${names.join(", ")}`
      : `Did you mean ${close}?`,
  });
}

const TERMS = {
  startupTimeoutMs: STARTUP_TIMEOUT_MS,
  timeoutMs: REQUEST_TIMEOUT_MS,
  maxTimeoutMs: REQUEST_TIMEOUT_IN_ALL_MS,
  required: true,
  rules: { effects: {}, risk: {}, sensitive: [] },
};

function atAddress(
  { url, headers, transport }: Extract<ServerReference, { kind: "url" }>,
): ServerConfig {
  const taken = Object.entries(headers).map(([name, value]) => [name, literal(value)]);
  const name = URL.canParse(url) ? new URL(url).host : url;
  return {
    ...TERMS,
    name,
    transport: transport ?? "auto",
    url: literal(url),
    headers: Object.fromEntries(taken),
  };
}

function onStdio(
  { command, args }: Extract<ServerReference, { kind: "command" }>,
): ServerConfig {
  return {
    ...TERMS,
    name: command.slice(command.lastIndexOf("/") + 1),
    transport: "stdio",
    command: literal(command),
    args: args.map(literal),
    env: {},
    inheritEnv: [],
  };
}

/** As a template that means the text itself. */
function literal(text: string): string {
  return text.replaceAll("$", "$$$$");
}
