/** From an entry under `servers`, checked, to a server's configuration: one unit for times, one kind of server or the other. */
import type { ServerConfig, ServerTerms } from "./agent_manifest.ts";
import {
  REQUEST_TIMEOUT_IN_ALL_MS,
  REQUEST_TIMEOUT_MS,
  type ServerFile,
} from "./manifest_schema.ts";

/** For an entry without mistakes. `file`: the `mcp.yaml` that it is from. */
export function toServer(name: string, server: ServerFile, file?: string): ServerConfig {
  const terms = termsOf(name, server, file);
  if (server.url !== undefined) {
    const { url, headers, transport_type: transport = "auto" } = server;
    if (transport !== "stdio") return { ...terms, transport, url, headers };
  }
  if (server.command === undefined) throw new Error(`Server "${name}" was not checked`);
  return {
    ...terms,
    transport: "stdio",
    command: server.command,
    args: server.args,
    env: server.env,
    ...server.cwd === undefined ? {} : { cwd: server.cwd },
    inheritEnv: server.inherit_env,
  };
}

function termsOf(name: string, server: ServerFile, file: string | undefined): ServerTerms {
  const { allow, effects, risk, sensitive } = server.tools;
  const timeoutMs = server.timeout ?? Math.min(REQUEST_TIMEOUT_MS, server.max_timeout ?? Infinity);
  return {
    name,
    ...file === undefined ? {} : { file },
    startupTimeoutMs: server.startup_timeout,
    timeoutMs,
    maxTimeoutMs: server.max_timeout ?? Math.max(REQUEST_TIMEOUT_IN_ALL_MS, timeoutMs),
    ...server.max_output_tokens === 0 ? {} : { outputTokensMax: server.max_output_tokens },
    required: server.required,
    ...server.share ? {} : { share: false as const },
    rules: { ...allow === undefined ? {} : { allow }, effects, risk, sensitive },
  };
}

/** What mounting a server does, for a person to judge: the command line or the address, variables unexpanded. */
export function effectOf(server: ServerConfig): string {
  if (server.transport === "stdio") return [server.command, ...server.args].join(" ");
  const names = Object.keys(server.headers);
  const sent = names.length === 0 ? "" : ` (sends ${names.join(", ")})`;
  return `connects to ${server.url}${sent}`;
}
