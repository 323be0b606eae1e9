/** What a process has in flight, in words: `files/read … 12s`. */
import type { InFlight } from "../base/operations.ts";
import { elapsed } from "./amounts.ts";
import { oneLine } from "./plain_text.ts";

/** Server and tool are enough of a tool's path; of a tool of rnix itself, and of an agent, its name. */
const TOOL_PATH =
  /^\/(?:mnt\/mcp\/(?:\d+-)?([^/]+\/)tools|dev\/[a-z]+\/tools|proc\/self\/children)\//;

/** A tool's path as short as it is still clear. */
export function toolText(path: string): string {
  return path.replace(TOOL_PATH, "$1");
}

/** A tool is named alone; what else is done to a device with its syscall, as strace has it. */
export function flightText({ syscall, path, started_ms }: InFlight, nowMs: number): string {
  const verb = syscall === "Write" ? "" : `${syscall} `;
  return oneLine(`${verb}${toolText(path)} … ${elapsed(Math.max(0, nowMs - started_ms))}`);
}
