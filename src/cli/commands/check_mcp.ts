/** `rnix check mcp`: whether the MCP servers of agents and of `mcp.yaml` could be mounted, told without starting any. */
import type { CheckFault } from "../../manifest/check.ts";
import type { Command } from "../command.ts";
import { checkOutcome, mcpData, prepareCheck } from "./check_outcome.ts";
import { EXAMPLES_ADVICE, mcpLines, NOTHING_CONFIGURED } from "./check_text.ts";

export const checkMcpCommand: Command = {
  name: "check mcp",
  summary: "Check the MCP servers of agents and of mcp.yaml",
  positionals: [{ name: "agent", kind: "agent", optional: true, rest: true }],
  flags: [],
  details:
    `Looks at manifests, variables and programs, and starts nothing. <agent> is a name or a path, or a server of mcp.yaml; without any, all of the project, the user and the working folder are checked.
Exits 0 when nothing is wrong, 1 when there are faults, 2 for a name that doesn't exist.`,
  async run(invocation, context) {
    const { mcp, transportFault } = await prepareCheck(context);
    const found = await mcp(invocation.words);
    const isEmpty = found.agents.length + found.servers.length + found.faults.length === 0;
    const lines = mcpLines(found, transportFault);
    return checkOutcome({
      lines: isEmpty ? [...lines.slice(0, 1), NOTHING_CONFIGURED] : lines,
      faults: [...transportFaults(transportFault), ...found.faults],
      notices: found.notices,
      ...isEmpty ? { advice: EXAMPLES_ADVICE } : {},
      data: { transport: { ok: transportFault === undefined }, ...mcpData(found) },
    });
  },
};

/** The fault of the transport layer, if it has one. */
export function transportFaults(message: string | undefined): CheckFault[] {
  return message === undefined ? [] : [{ grave: true, message }];
}
