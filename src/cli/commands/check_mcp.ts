/** `rnix check mcp`: whether the MCP servers of agents and of `mcp.yaml` could be mounted, told without starting any; with `--connect` they are started and judged. */
import type { CheckFault } from "../../manifest/check.ts";
import type { Command } from "../command.ts";
import { hasSwitch } from "../flag_values.ts";
import { type JudgedServer, judgeFound, verdictFaults, verdictLines } from "./check_connect.ts";
import { checkOutcome, mcpData, prepareCheck } from "./check_outcome.ts";
import { EXAMPLES_ADVICE, mcpLines, NOTHING_CONFIGURED } from "./check_text.ts";

export const checkMcpCommand: Command = {
  name: "check mcp",
  summary: "Check the MCP servers of agents and of mcp.yaml",
  positionals: [{ name: "agent", kind: "agent", optional: true, rest: true }],
  flags: [
    { name: "connect", summary: "Start each server and say how it takes being spoken to" },
    { name: "trust", summary: "Trust what this project's files start" },
  ],
  details:
    `Looks at manifests, variables and programs, and starts nothing. <agent> is a name or a path, or a server of mcp.yaml; without any, all of the project, the user and the working folder are checked.
With --connect the servers without a fault are started by the daemon, all at once, and ended again; none of their tools is called. It says which versions they speak, what they do with ping, pages and output, and what each provider would make of their tools. -v shows notes too.
Exits 0 when nothing is wrong, 1 when there are faults, 2 for a name that doesn't exist.`,
  async run(invocation, context) {
    const { mcp, transportFault } = await prepareCheck(context);
    const found = await mcp(invocation.words);
    const isEmpty = found.agents.length + found.servers.length + found.faults.length === 0;
    const connects = hasSwitch(invocation, "connect") && transportFault === undefined;
    const lines = mcpLines(found, transportFault, connects);
    const judged: JudgedServer[] = connects
      ? await judgeFound(found, context, hasSwitch(invocation, "trust"))
      : [];
    return checkOutcome({
      lines: isEmpty
        ? [...lines.slice(0, 1), NOTHING_CONFIGURED]
        : [...lines, ...verdictLines(judged)],
      faults: [...found.faults, ...verdictFaults(judged)],
      told: transportFaults(transportFault),
      notices: found.notices,
      ...isEmpty ? { advice: EXAMPLES_ADVICE } : {},
      data: { transport: { ok: transportFault === undefined }, ...mcpData(found, judged) },
    }, context);
  },
};

/** The fault of the transport layer, if it has one. */
export function transportFaults(message: string | undefined): CheckFault[] {
  return message === undefined ? [] : [{ severity: "fault", message }];
}
