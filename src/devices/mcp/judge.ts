/**
 * A judge of MCP servers: starts one, speaks to it in both eras, and says what a run would meet.
 *
 * 1. It is mounted first, as a run would mount it; where that fails, the reason is the verdict, unless its list of tools alone was to blame.
 * 2. Each era is then tried on a start of its own, past the SDK.
 * 3. Nothing is called: no tool runs.
 *
 * Every start is bound by the server's own `startup_timeout`, and nothing of the server is left when the verdict is there.
 */
import type { Clock } from "../../base/clock.ts";
import type { ErrorCode, SysError } from "../../base/errors.ts";
import { isJsonObject, type Json, nestsDeeper, wellFormed } from "../../base/json.ts";
import type { ErrorBody } from "../../base/operations.ts";
import { redactError } from "../../base/redacted_error.ts";
import type { Redaction, Redactor } from "../../base/redaction.ts";
import type { ServerVerdict } from "../../base/server_verdict.ts";
import { connectServer } from "../../mcp/connect_server.ts";
import type { ServerConnection } from "../../mcp/connection.ts";
import type { TransportMemory } from "../../mcp/http_connect.ts";
import type { McpServerLaunch, ProcessKeeper } from "../../mcp/launch.ts";
import { McpSession } from "../../mcp/session.ts";
import { StderrLog } from "../../mcp/stderr_log.ts";
import { findingsOf, resultOf } from "./judge_findings.ts";
import { CountingLog } from "./judge_log.ts";
import { judgeTools } from "./judge_tools.ts";
import { NOT_TRIED, type TrialDeps, tryLegacy, tryModern } from "./judge_trial.ts";
import { plainName } from "./tool_names.ts";
import { buildToolTable } from "./tool_table.ts";

export interface JudgeDeps {
  clock: Clock;
  /** Resolves with the guard once it is up; no server is started before. */
  keeper?: (() => Promise<ProcessKeeper>) | undefined;
  /** Told to servers as the client. */
  clientInfo: { name: string; version: string };
  redaction: Redaction;
  /** Ends the judging early; the verdict says what was seen until then. */
  signal?: AbortSignal;
}

/** What every start shares: how an address is spoken to is found out once. */
interface Reach extends JudgeDeps {
  transports: TransportMemory;
}

/** Where a mount fails for this, there is more to be seen: it is the list of tools that has no end. */
const LISTING_FAILED: ErrorCode = "RESOURCE_EXHAUSTED";

/** Judges one server. Never rejects; at most three times its `startup_timeout`, and the time to end it. */
export async function judgeServer(
  launch: McpServerLaunch,
  deps: JudgeDeps,
): Promise<ServerVerdict> {
  const { sink } = deps.redaction;
  const log = new CountingLog({ redact: (text) => sink.redact(text) });
  const verdict = blank(launch.server, launch.transport);
  const reach: Reach = { ...deps, transports: new Map() };
  await mount(verdict, launch, { ...reach, log });
  const { noiseLines: lines, firstNoise: first } = log;
  verdict.stdout_noise = { lines, ...first === undefined ? {} : { first } };
  verdict.stderr = { lines: log.stderrLines, bytes: log.stderrBytes };
  if (verdict.error === undefined || verdict.error.code === LISTING_FAILED) {
    await tryEras(verdict, launch, reach);
  }
  return concluded(verdict, launch.startupTimeoutMs);
}

/** The verdict on a server that nobody came to: it could not be named, its values are not set, it is not trusted. */
export function unreachedVerdict(server: string, error: SysError): ServerVerdict {
  return concluded({ ...blank(server, "unknown"), error: errorBody(error) }, 0);
}

function blank(server: string, transport: string): ServerVerdict {
  return {
    server,
    transport,
    result: "ok",
    eras: { modern: NOT_TRIED, legacy: NOT_TRIED },
    ping: "not-tried",
    stdout_noise: { lines: 0 },
    stderr: { lines: 0, bytes: 0 },
    tools: { usable: [], set_aside: [], renamed: [] },
    providers: [],
    findings: [],
  };
}

/** The same with what its facts mean. */
function concluded(verdict: ServerVerdict, startupTimeoutMs: number): ServerVerdict {
  const findings = findingsOf(verdict, startupTimeoutMs);
  return { ...verdict, findings, result: resultOf(findings) };
}

/** Mounts the server as a run would, and looks at its tools. */
async function mount(
  verdict: ServerVerdict,
  launch: McpServerLaunch,
  deps: Reach & { log: CountingLog },
): Promise<void> {
  const { clock, clientInfo, signal, redaction: { sink }, log } = deps;
  const startedMs = clock.monotonic();
  let session: McpSession | undefined;
  try {
    session = await McpSession.open({
      server: launch.server,
      startupTimeoutMs: launch.startupTimeoutMs,
      clock,
      connect: () => connect(launch, deps),
      signal,
      clientInfo,
    });
    verdict.connect_ms = Math.round(clock.monotonic() - startedMs);
    verdict.era = session.era;
    verdict.protocol_version = session.protocolVersion;
    const { serverInfo } = session;
    if (serverInfo !== undefined && !nestsDeeper(serverInfo)) {
      const shown = sink.redactJson(wellFormed(serverInfo));
      if (isJsonObject(shown)) verdict.server_info = shown;
    }
    lookAtTools(verdict, session.tools, sink);
  } catch (thrown) {
    verdict.error = errorBody(redactError(thrown, sink));
  } finally {
    await session?.close();
    await log.close();
  }
}

function lookAtTools(verdict: ServerVerdict, listed: readonly Json[], sink: Redactor): void {
  const shown = (text: string) => sink.redact(text.toWellFormed());
  const { tools, setAside } = buildToolTable(verdict.server, listed);
  verdict.tools = {
    usable: tools.map(({ name }) => shown(name)),
    set_aside: Object.entries(setAside).map(([tool, reason]) => ({
      tool: shown(tool),
      reason: shown(reason),
    })),
    renamed: tools.filter(({ name, modelName }) => modelName !== plainName(verdict.server, name))
      .map(({ name, modelName }) => ({ tool: shown(name), name: shown(modelName) })),
  };
  const withReasons = (list: readonly { tool: string; reason: string }[]) =>
    list.map(({ tool, reason }) => ({ tool: shown(tool), reason: shown(reason) }));
  verdict.providers = judgeTools(tools).map((provider) => ({
    ...provider,
    refused: withReasons(provider.refused),
    altered: withReasons(provider.altered),
  }));
}

/** Both eras, each on a start of its own. */
async function tryEras(
  verdict: ServerVerdict,
  launch: McpServerLaunch,
  deps: Reach,
): Promise<void> {
  const redact = (text: string) => deps.redaction.sink.redact(text);
  const log = new StderrLog({ redact });
  const trialDeps: TrialDeps = {
    clock: deps.clock,
    clientInfo: deps.clientInfo,
    startupTimeoutMs: launch.startupTimeoutMs,
    signal: deps.signal,
    connect: () => connect(launch, { ...deps, log }),
    redact,
  };
  const modern = await tryModern(trialDeps);
  const legacy = await tryLegacy(trialDeps);
  verdict.eras = { modern: modern.era, legacy: legacy.era };
  verdict.ping = legacy.ping;
  const paging = legacy.paging ?? modern.paging;
  if (paging !== undefined) verdict.paging = paging;
}

async function connect(
  launch: McpServerLaunch,
  { clock, keeper, log, transports }: Reach & { log: StderrLog },
): Promise<ServerConnection> {
  return await connectServer(launch, { clock, keeper, log, transports });
}

function errorBody({ code, message, hint }: SysError): ErrorBody {
  return { code, message, ...hint === undefined ? {} : { hint } };
}
