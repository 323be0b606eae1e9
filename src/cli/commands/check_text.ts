/**
 * What a check found, as lines: what is there on stdout, one line for each thing that is wrong below it; what to do about each on stderr.
 *
 * The lines about MCP have the form that users of `check mcp` know, so other programs may read them; `--json` says the same and more.
 */
import type { CheckedAgent, CheckedServer, CheckFault, McpCheck } from "../../manifest/check.ts";
import type { CheckedProvider } from "../../manifest/check_providers.ts";
import { counted } from "../amounts.ts";
import { oneLine } from "../plain_text.ts";

/** Said where there is nothing to check. */
export const NOTHING_CONFIGURED = "No agents and no MCP servers are configured here.";
export const EXAMPLES_ADVICE = "rnix init --with-mcp-examples adds two agents with MCP servers";

const GOOD = "✓";
const BAD = "✗";
const MARKS = { warning: "! Warning:", note: "· Note:" };

/** What something is called that a run would fail for. */
export type FaultWord = "Error" | "Warning";

/** The sections about MCP. `transportFault`: why no server could be started at all. */
export function mcpLines(
  check: McpCheck,
  transportFault: string | undefined,
  isConnected = false,
): string[] {
  return [
    transportFault === undefined
      ? `${GOOD} MCP transport layer: OK`
      : `${BAD} MCP transport layer: ${transportFault}`,
    ...agentLines(check.agents.filter(({ servers }) => servers !== undefined)),
    ...sharedLines(check.servers.filter(({ agent }) => agent === undefined)),
    ...programLines(check.servers),
    ...addressLines(check.servers, isConnected),
  ].map(oneLineKeepingIndent);
}

/** Manifests that were found, whole or not. */
export function manifestLines(agents: readonly CheckedAgent[]): string[] {
  if (agents.length === 0) return [`${GOOD} Manifests found: none`];
  return [
    `${GOOD} Manifests found: ${counted(agents.length, "agent")}`,
    ...agents.map(({ name, path }) => `  - ${name}: ${path}`),
  ].map(oneLineKeepingIndent);
}

/** Model providers and whether what they need is there. */
export function providerLines(providers: readonly CheckedProvider[]): string[] {
  if (providers.length === 0) return [];
  return [
    `${GOOD} Model providers found:`,
    ...providers.map(({ name, state }) => `  - ${name}: ${state}`),
  ].map(oneLineKeepingIndent);
}

/** What is wrong, a line each. */
export function faultLines(
  faults: readonly CheckFault[],
  faultWord: FaultWord = "Warning",
): string[] {
  return faults.map((fault) => {
    const { severity } = fault;
    const mark = severity === "fault" ? `${BAD} ${faultWord}:` : MARKS[severity];
    return oneLine(`${mark} ${placeOf(fault)}${fault.message}`);
  });
}

/** What to do, each hint once with what it is about. */
export function hintLines(faults: readonly CheckFault[]): string[] {
  const about = new Map<string, string[]>();
  for (const { hint, agent, server } of faults) {
    if (hint === undefined) continue;
    const who = [agent, server].filter((name) => name !== undefined).join("/");
    about.set(hint, [...about.get(hint) ?? [], ...who === "" ? [] : [who]]);
  }
  return [...about].map(([hint, names]) =>
    oneLine(`hint: ${names.length === 0 ? "" : `${[...new Set(names)].join(", ")}: `}${hint}`)
  );
}

function agentLines(agents: readonly CheckedAgent[]): string[] {
  const withServers = agents.filter(({ servers = [] }) => servers.length > 0);
  const without = agents.length - withServers.length;
  if (agents.length === 0) return [`${GOOD} Agent MCP configs found: none`];
  const marked = without === 0 ? "" : `, ${without} without any (mcp: {})`;
  const head = `${counted(withServers.length, "agent")} with MCP servers${marked}`;
  return [
    `${GOOD} Agent MCP configs found: ${head}`,
    ...agents.map(({ name, servers = [] }) =>
      `  - ${name}: ${servers.length === 0 ? "(no servers)" : servers.join(", ")}`
    ),
  ];
}

/** Servers of `mcp.yaml`. */
function sharedLines(servers: readonly CheckedServer[]): string[] {
  if (servers.length === 0) return [];
  return [
    `${GOOD} Servers of mcp.yaml found: ${counted(servers.length, "server")}`,
    ...servers.map(({ name, usedBy = [] }) =>
      `  - ${name}: ${usedBy.length === 0 ? "used by no agent" : `used by ${usedBy.join(", ")}`}`
    ),
  ];
}

/** Programs by the name that they are configured with, each place once. */
function programLines(servers: readonly CheckedServer[]): string[] {
  const found = servers.flatMap(({ command, program }) =>
    command === undefined || program === undefined ? [] : [`  - ${command}: ${program}`]
  );
  return found.length === 0 ? [] : [`${GOOD} Server binaries found:`, ...new Set(found)];
}

/** Addresses of servers that aren't started, each once. */
function addressLines(servers: readonly CheckedServer[], isAsked: boolean): string[] {
  const found = servers.flatMap(({ url }) => url === undefined ? [] : [`  - ${url}`]);
  return found.length === 0
    ? []
    : [`${GOOD} Server addresses found${isAsked ? "" : " (not asked)"}:`, ...new Set(found)];
}

function placeOf({ agent, server, file, line, column }: CheckFault): string {
  if (file !== undefined) return line === undefined ? `${file}: ` : `${file}:${line}:${column}: `;
  if (agent !== undefined) {
    return `agent '${agent}'${server === undefined ? "" : ` MCP server '${server}'`} — `;
  }
  return server === undefined ? "" : `mcp.yaml MCP server '${server}' — `;
}

function oneLineKeepingIndent(line: string): string {
  return line.startsWith("  - ") ? `  ${oneLine(line)}` : oneLine(line);
}
