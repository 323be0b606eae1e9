/** `rnix mcp list`: servers of runs that are at work or suspended. */
import type { MountRow } from "../../base/operations.ts";
import { count, elapsed } from "../amounts.ts";
import type { Command } from "../command.ts";
import { oneLine } from "../plain_text.ts";
import { type Column, textTable } from "../table.ts";

const COLUMNS: readonly Column[] = [
  { heading: "MOUNT" },
  { heading: "TRANSPORT" },
  { heading: "STATUS" },
  { heading: "TOOLS", right: true },
  { heading: "PROTOCOL" },
  { heading: "AGENT" },
];

export const mcpList: Command = {
  name: "mcp list",
  summary: "List the MCP servers of runs at work or suspended",
  positionals: [],
  flags: [],
  details:
    "A suspended run's servers are unmounted; resume mounts them again. Transport auto is a " +
    "url without a transport_type: http, then sse.",
  async run(_, context) {
    const system = await context.system();
    const mounts = await system.mounts();
    const { stdout, clock } = context.world;
    return {
      exitCode: 0,
      data: { mounts },
      text: context.quiet
        ? mounts.map(({ mount }) => `${mount}\n`).join("")
        : mountTable(mounts, stdout.isTerminal ? context.world.columns() : undefined),
      remarks: mounts.flatMap((row) => troubleOf(row, clock.now())),
    };
  },
};

/** Why a mount isn't connected, and since when; nothing of one that is, or that isn't mounted. */
function troubleOf({ mount, status, since_ms, last_error }: MountRow, nowMs: number): string[] {
  if (since_ms === undefined || status === "connected") return [];
  const why = last_error === undefined ? "" : `: ${oneLine(last_error)}`;
  return [`${oneLine(mount)}: ${status} for ${elapsed(nowMs - since_ms)}${why}`];
}

/** The table; a sentence where there is nothing to list. */
export function mountTable(mounts: readonly MountRow[], width: number | undefined): string {
  if (mounts.length === 0) return "No MCP servers are mounted.";
  const rows = mounts.map((row) => [
    oneLine(row.mount),
    oneLine(row.transport),
    row.status,
    count(row.tools),
    oneLine(row.protocol_version),
    oneLine(row.agent),
  ]);
  return textTable(COLUMNS, rows, { width }).join("\n");
}
