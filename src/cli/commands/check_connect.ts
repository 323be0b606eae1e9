/** `check mcp --connect`: the servers that a look alone found nothing wrong with are started and judged, and what the judge says becomes lines and faults like all others. */
import type { ServerReference } from "../../base/server_operations.ts";
import type { EraTrial, ServerVerdict } from "../../base/server_verdict.ts";
import type { CheckedAgent, CheckedServer, CheckFault, McpCheck } from "../../manifest/check.ts";
import { counted, elapsed } from "../amounts.ts";
import type { Context } from "../command.ts";
import { oneLine } from "../plain_text.ts";
import { clientFacts } from "../supervise.ts";
import { referenceTo } from "./check_ready.ts";
import { questionerOf } from "./mcp_connect_trust.ts";

/** A server and what became of it. */
export interface JudgedServer {
  server: CheckedServer;
  verdict: ServerVerdict;
}

/** Starts and judges all servers that could be started, at once; none where there are none. */
export async function judgeFound(
  found: McpCheck,
  context: Context,
  trust: boolean,
): Promise<JudgedServer[]> {
  const targets = targetsIn(found);
  if (targets.length === 0) return [];
  const { stderr } = context.world;
  const isWatched = context.loudness === "full" || context.loudness === "verbose";
  const judged: JudgedServer[] = [];
  const questioner = questionerOf(context);
  const system = await context.system();
  await system.judgeServers({
    servers: targets.map(({ reference }) => reference),
    client: clientFacts(context, false),
    trust,
  }, {
    onVerdict(index, verdict) {
      const server = targets[index]?.server;
      if (server === undefined) return;
      judged[index] = { server, verdict };
      if (isWatched) stderr.write(`[check] ${oneLine(nameOf(server))}: ${verdict.result}\n`);
    },
    confirmTrust: (question) => questioner.confirmTrust(question),
    onWarning: (message) => stderr.write(`${message}\n`),
  });
  return judged.filter((each) => each !== undefined);
}

/** What is started: what no fault was found of; a server of `mcp.yaml` once, whoever uses it. */
function targetsIn(
  { agents, servers, faults }: McpCheck,
): { server: CheckedServer; reference: ServerReference }[] {
  const isFaulty = ({ agent, name, usedBy = [] }: CheckedServer) =>
    faults.some((fault) =>
      fault.server === name &&
      (fault.agent === agent || fault.agent !== undefined && usedBy.includes(fault.agent))
    );
  const isListed = (name: string) =>
    servers.some((server) => server.agent === undefined && server.name === name);
  return servers.filter((server) => !isFaulty(server)).flatMap((server) => {
    if (server.agent === undefined) {
      return [{ server, reference: { kind: "configured", name: server.name } }];
    }
    const agent = agents.find(({ name }) => name === server.agent);
    if (agent?.loaded === undefined) return [];
    if (server.isShared && isListed(server.name)) return [];
    return [{ server, reference: ofAgent(agent, server.name) }];
  });
}

function ofAgent(agent: CheckedAgent, server: string): ServerReference {
  return { kind: "agent", manifest: referenceTo(agent), server };
}

/** One line for each server that was started. */
export function verdictLines(judged: readonly JudgedServer[]): string[] {
  if (judged.length === 0) return [];
  return [
    "✓ Servers connected:",
    ...judged.map(({ server, verdict }) =>
      `  - ${oneLine(`${nameOf(server)}: ${toldOf(verdict)}`)}`
    ),
  ];
}

/** What the judge found, as faults of the server; of one that a run goes on without they are warnings. */
export function verdictFaults(judged: readonly JudgedServer[]): CheckFault[] {
  return judged.flatMap(({ server: { name, agent, required }, verdict }) =>
    verdict.findings.map(({ severity, ...finding }): CheckFault => ({
      severity: severity === "fault" && !required ? "warning" : severity,
      ...agent === undefined ? {} : { agent },
      server: name,
      ...finding,
    }))
  );
}

function nameOf({ name, agent }: CheckedServer): string {
  return agent === undefined ? name : `${agent}/${name}`;
}

/** `ok, 14 tools in 340ms, speaks 2025-06-18 (initialize), answers ping` */
function toldOf(verdict: ServerVerdict): string {
  const { result, error, tools, connect_ms, eras, ping } = verdict;
  const eraTexts = [
    eraText(eras.modern, "server/discover"),
    eraText(eras.legacy, "initialize"),
  ].filter((text) => text !== undefined);
  const told = [
    result,
    ...error === undefined
      ? [`${counted(tools.usable.length, "tool")} in ${elapsed(connect_ms ?? 0)}`]
      : ["not mounted"],
    ...eraTexts.length === 0 ? [] : [`speaks ${eraTexts.join(" and ")}`],
    ...ping === "answered" ? ["answers ping"] : [],
  ];
  return told.join(", ");
}

function eraText({ spoken, versions }: EraTrial, method: string): string | undefined {
  return spoken ? `${versions.join(", ")} (${method})` : undefined;
}
