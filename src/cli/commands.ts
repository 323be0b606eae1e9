/**
 * All commands by name, in the order of the help. To add one: one file and one line here.
 *
 * A command's module is loaded when its name stands in the command line, so that no command pays for the others.
 */
import type { Command } from "./command.ts";

interface Entry {
  name: string;
  load(): Promise<Command>;
}

const ENTRIES: readonly Entry[] = [
  { name: "run", load: async () => (await import("./commands/run.ts")).run },
  { name: "resume", load: async () => (await import("./commands/resume.ts")).resume },
  { name: "ps", load: async () => (await import("./commands/ps.ts")).ps },
  { name: "top", load: async () => (await import("./commands/top.ts")).top },
  { name: "attach", load: async () => (await import("./commands/attach.ts")).attach },
  { name: "logs", load: async () => (await import("./commands/logs.ts")).logs },
  { name: "strace", load: async () => (await import("./commands/strace.ts")).strace },
  { name: "replay", load: async () => (await import("./commands/replay.ts")).replay },
  { name: "graph", load: async () => (await import("./commands/graph.ts")).graph },
  { name: "wait", load: async () => (await import("./commands/wait.ts")).wait },
  { name: "kill", load: async () => (await import("./commands/kill.ts")).kill },
  { name: "pause", load: async () => (await import("./commands/kill.ts")).pause },
  { name: "ls", load: async () => (await import("./commands/vfs.ts")).ls },
  { name: "cat", load: async () => (await import("./commands/vfs.ts")).cat },
  { name: "write", load: async () => (await import("./commands/vfs.ts")).write },
  { name: "stat", load: async () => (await import("./commands/vfs.ts")).stat },
  { name: "init", load: async () => (await import("./commands/init.ts")).init },
  { name: "mcp list", load: async () => (await import("./commands/mcp_list.ts")).mcpList },
  { name: "mcp test", load: async () => (await import("./commands/mcp_test.ts")).mcpTest },
  { name: "mcp connect", load: async () => (await import("./commands/mcp_connect.ts")).mcpConnect },
  { name: "mcp logs", load: async () => (await import("./commands/mcp_logs.ts")).mcpLogs },
  { name: "mcp import", load: async () => (await import("./commands/mcp_import.ts")).mcpImport },
  { name: "check", load: async () => (await import("./commands/check.ts")).check },
  {
    name: "check mcp",
    load: async () => (await import("./commands/check_mcp.ts")).checkMcpCommand,
  },
  { name: "doctor", load: async () => (await import("./commands/doctor.ts")).doctor },
  {
    name: "journal verify",
    load: async () => (await import("./commands/journal_verify.ts")).journalVerify,
  },
  {
    name: "journal repair",
    load: async () => (await import("./commands/journal_repair.ts")).journalRepair,
  },
  {
    name: "journal export",
    load: async () => (await import("./commands/journal_export.ts")).journalExport,
  },
  { name: "gc", load: async () => (await import("./commands/gc.ts")).gc },
  { name: "daemon run", load: async () => (await import("./commands/daemon.ts")).daemonRun },
  { name: "daemon start", load: async () => (await import("./commands/daemon.ts")).daemonStart },
  { name: "daemon stop", load: async () => (await import("./commands/daemon.ts")).daemonStop },
  { name: "daemon status", load: async () => (await import("./commands/daemon.ts")).daemonStatus },
  {
    name: "completions",
    load: async () => (await import("./commands/completions.ts")).completions,
  },
  { name: "version", load: async () => (await import("./commands/version.ts")).version },
  { name: "help", load: async () => (await import("./commands/help.ts")).helpCommand(allCommands) },
  {
    name: "complete",
    load: async () => (await import("./commands/completions.ts")).completeCommand(allCommands),
  },
];

/** The whole table. */
export async function allCommands(): Promise<readonly Command[]> {
  return await Promise.all(ENTRIES.map(({ load }) => load()));
}

/**
 * Those that a command line can mean: of the commands that begin with its first word, the ones whose other words are in it too.
 * Where there is none, all, for the error to choose from.
 */
export async function commandsFor(args: readonly string[]): Promise<readonly Command[]> {
  const first = args.find((arg, at) => !arg.startsWith("-") && args[at - 1] !== "--home");
  const meant = ENTRIES.filter(({ name }) => {
    const [word, ...others] = name.split(" ");
    return word === first && others.every((other) => args.includes(other));
  });
  if (meant.length === 0) return await allCommands();
  return await Promise.all(meant.map(({ load }) => load()));
}
