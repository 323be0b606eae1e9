/** `rnix mcp logs`: what a mounted server wrote to stderr, also one that failed to start. */
import type { LogLine } from "../../base/operations.ts";
import type { Command } from "../command.ts";
import { plainText } from "../plain_text.ts";

export const mcpLogs: Command = {
  name: "mcp logs",
  summary: "Show what an MCP server wrote to stderr",
  positionals: [{ name: "mount", kind: "mount" }],
  flags: [],
  details:
    "<mount> is PID-SERVER as in /mnt/mcp, or a server's name: then of the newest run that has it.",
  async run(invocation, context) {
    const system = await context.system();
    const { stdout, stderr } = context.world;
    const mount = invocation.words[0] ?? "";
    const lines: LogLine[] = [];
    let count = 0;
    for await (const line of system.mountLogs(mount)) {
      count += 1;
      if (context.json) lines.push(line);
      else {
        const text = stdout.isTerminal ? plainText(line.text) : line.text;
        stdout.write(`[stderr] ${text}\n`);
        await stdout.flush();
      }
    }
    if (count === 0 && !context.json && context.loudness !== "quiet") {
      stderr.write(`${plainText(mount)} wrote nothing to stderr\n`);
    }
    return { exitCode: 0, data: { lines } };
  },
};
