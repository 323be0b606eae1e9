/**
 * The program: the world outside is gathered here, handed to the command line, and the process ends with its exit code.
 *
 * The client, what reads the state folder and the daemon itself are loaded only by commands that need them, so that `rnix version` starts like a small program.
 */
import {
  type Connection,
  type DaemonControl,
  Input,
  main,
  Output,
  type World,
} from "./src/cli/mod.ts";
import type { DaemonConnection } from "./src/client/mod.ts";
import { systemClock } from "./src/base/clock.ts";
import { disk } from "./src/base/disk.ts";
import { watchFaults } from "./src/base/fault.ts";
import { INSTANCE_VARIABLE } from "./src/base/instance.ts";
import { resolvePaths } from "./src/base/paths.ts";
import { selfCommand, userEnvironment } from "./src/base/self.ts";
import type { Upkeep } from "./src/base/upkeep.ts";

type Environment = { [name: string]: string };

const inherited = Deno.env.toObject();
const uid = Deno.uid() ?? 0;

const world: World = {
  args: Deno.args,
  env: userEnvironment(inherited),
  cwd: Deno.cwd(),
  platform: Deno.build.os,
  runtime: `deno ${Deno.version.deno}`,
  uid,
  stdout: new Output(Deno.stdout),
  stderr: new Output(Deno.stderr),
  stdin: new Input(Deno.stdin),
  clock: systemClock,
  // A terminal that doesn't know its size says 0.
  columns: () => Deno.stdout.isTerminal() ? Deno.consoleSize().columns || undefined : undefined,
  size: () => Deno.stdout.isTerminal() ? Deno.consoleSize() : undefined,
  onSignal,
  connect,
  daemon,
  upkeep,
  insideRun,
};

function onSignal(signal: Deno.Signal, heard: () => void): () => void {
  Deno.addSignalListener(signal, heard);
  return () => Deno.removeSignalListener(signal, heard);
}

/** What a client needs to find or start the daemon. */
function connectOptions(env: Environment) {
  const self = selfCommand({
    standalone: Deno.build.standalone,
    execPath: Deno.execPath(),
    mainModule: Deno.mainModule,
    env: inherited,
  });
  return { env, uid, clock: systemClock, storage: disk, self };
}

async function connect(env: Environment): Promise<Connection> {
  const client = await import("./src/client/mod.ts");
  const open: (() => void)[] = [];
  const speakTo = ({ socket, status }: DaemonConnection) => {
    open.push(() => socket.close());
    return new client.DaemonClient(socket, { osPid: status.os_pid });
  };
  const live = async () => speakTo(await client.connectDaemon(connectOptions(env)));
  const found = async () => {
    const connection = await client.reachDaemon(connectOptions(env));
    return connection === undefined ? undefined : speakTo(connection);
  };
  const reader = async () => {
    const { createReader } = await import("./src/daemon/reader.ts");
    return createReader(env, uid);
  };
  const close = () => Promise.resolve(open.forEach((each) => each()));
  return { system: new client.SplitSystem({ live, found, reader }), close };
}

async function upkeep(env: Environment): Promise<Upkeep> {
  const { createUpkeep } = await import("./src/daemon/upkeep.ts");
  return createUpkeep(env, { uid, osPid: Deno.pid });
}

async function insideRun(env: Environment): Promise<boolean> {
  const [{ isInsideRun }, { servingPid }] = await Promise.all([
    import("./src/client/ancestors.ts"),
    import("./src/base/daemon_files.ts"),
  ]);
  const daemonPid = await servingPid(disk, resolvePaths(env, uid).state);
  return await isInsideRun(inherited, Deno.pid, daemonPid);
}

function daemon(env: Environment): DaemonControl {
  const client = () => import("./src/client/mod.ts");
  return {
    status: async () => await (await client()).daemonStatus(connectOptions(env)),
    start: async () => await (await client()).startDaemon(connectOptions(env)),
    stop: async () => await (await client()).endDaemon(connectOptions(env)),
    async run() {
      if (env[INSTANCE_VARIABLE] !== undefined) {
        return await (await client()).runUnmarked(connectOptions(env));
      }
      const { runDaemon } = await import("./src/daemon/mod.ts");
      await runDaemon({ env, uid, osPid: Deno.pid, onSignal });
      return 0;
    },
  };
}

if ((inherited["RNIX_DEBUG"] ?? "") === "") {
  watchFaults((text) => {
    Deno.stderr.writeSync(new TextEncoder().encode(text));
    Deno.exit(1);
  });
}

Deno.exit(await main(world));
