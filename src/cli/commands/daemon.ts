/** `rnix daemon run|start|stop|status`: the process that holds the runs. */
import type { DaemonStatus } from "../../base/wire.ts";
import { counted, elapsed } from "../amounts.ts";
import type { Command } from "../command.ts";

export const daemonRun: Command = {
  name: "daemon run",
  summary: "Be the daemon, in the foreground",
  positionals: [],
  flags: [],
  details: `It ends by itself when it has had nothing to do for a minute, and with rnix daemon stop,
TERM or HUP: what is at work is suspended then.`,
  async run(_, { world, env }) {
    return { exitCode: await world.daemon(env).run() };
  },
};

export const daemonStart: Command = {
  name: "daemon start",
  summary: "Start the daemon, if none runs",
  positionals: [],
  flags: [],
  async run(_, { world, env }) {
    const status = await world.daemon(env).start();
    return { exitCode: 0, data: status, text: statusText(status) };
  },
};

export const daemonStop: Command = {
  name: "daemon stop",
  summary: "Suspend what is at work and end the daemon",
  positionals: [],
  flags: [],
  async run(_, { world, env }) {
    const stopped = await world.daemon(env).stop();
    if (stopped === undefined) {
      return { exitCode: 0, data: { stopped: false }, text: "daemon is not running" };
    }
    const { runs } = stopped;
    return {
      exitCode: 0,
      data: { stopped: true, runs },
      text: "daemon stopped",
      remarks: runs === 0 ? [] : [
        `${counted(runs, "run")} ${
          runs === 1 ? "was" : "were"
        } at work; to go on: rnix resume --all`,
      ],
    };
  },
};

export const daemonStatus: Command = {
  name: "daemon status",
  summary: "Show whether a daemon runs",
  positionals: [],
  flags: [],
  async run(_, { world, env }) {
    const status = await world.daemon(env).status();
    if (status === undefined) {
      const error = { code: "NOT_FOUND", message: "Daemon is not running" };
      const data = { running: false };
      return { exitCode: 1, data, text: "daemon is not running", error, errorTold: true };
    }
    return { exitCode: 0, data: { running: true, ...status }, text: statusText(status) };
  },
};

function statusText({ os_pid, version, runs, clients, uptime_ms, socket }: DaemonStatus): string {
  return `daemon is running: process ${os_pid}, rnix ${version}, up ${elapsed(uptime_ms)}
${counted(runs, "run")} at work, ${counted(clients, "client")}
${socket}`;
}
