/** All commands, in the order of the help. To add one: one file and one line here. */
import type { Command } from "./command.ts";
import { attach } from "./commands/attach.ts";
import { check } from "./commands/check.ts";
import { checkMcpCommand } from "./commands/check_mcp.ts";
import { completions } from "./commands/completions.ts";
import { daemonRun, daemonStart, daemonStatus, daemonStop } from "./commands/daemon.ts";
import { doctor } from "./commands/doctor.ts";
import { gc } from "./commands/gc.ts";
import { init } from "./commands/init.ts";
import { journalExport } from "./commands/journal_export.ts";
import { journalRepair } from "./commands/journal_repair.ts";
import { journalVerify } from "./commands/journal_verify.ts";
import { kill, pause } from "./commands/kill.ts";
import { logs } from "./commands/logs.ts";
import { mcpImport } from "./commands/mcp_import.ts";
import { mcpConnect } from "./commands/mcp_connect.ts";
import { mcpList } from "./commands/mcp_list.ts";
import { mcpLogs } from "./commands/mcp_logs.ts";
import { mcpTest } from "./commands/mcp_test.ts";
import { ps } from "./commands/ps.ts";
import { replay } from "./commands/replay.ts";
import { resume } from "./commands/resume.ts";
import { run } from "./commands/run.ts";
import { strace } from "./commands/strace.ts";
import { top } from "./commands/top.ts";
import { version } from "./commands/version.ts";
import { cat, ls, stat, write } from "./commands/vfs.ts";
import { wait } from "./commands/wait.ts";

/** `help` isn't in it: it is about this table, so `mod.ts` answers it. */
export const COMMANDS: readonly Command[] = [
  run,
  resume,
  ps,
  top,
  attach,
  logs,
  strace,
  replay,
  wait,
  kill,
  pause,
  ls,
  cat,
  write,
  stat,
  init,
  mcpList,
  mcpTest,
  mcpConnect,
  mcpLogs,
  mcpImport,
  check,
  checkMcpCommand,
  doctor,
  journalVerify,
  journalRepair,
  journalExport,
  gc,
  daemonRun,
  daemonStart,
  daemonStop,
  daemonStatus,
  completions,
  version,
];
