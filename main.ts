/**
 * The program: the world outside is gathered here, handed to the command line, and the process ends with its exit code.
 *
 * The running system is loaded only by commands that need it, so that `rnix version` starts like a small program.
 */
import { Input, main, Output, type World } from "./src/cli/mod.ts";
import { systemClock } from "./src/base/clock.ts";
import { userEnvironment } from "./src/base/self.ts";

const world: World = {
  args: Deno.args,
  env: userEnvironment(Deno.env.toObject()),
  cwd: Deno.cwd(),
  platform: Deno.build.os,
  runtime: `deno ${Deno.version.deno}`,
  uid: Deno.uid() ?? 0,
  stdout: new Output(Deno.stdout),
  stderr: new Output(Deno.stderr),
  stdin: new Input(Deno.stdin),
  clock: systemClock,
  columns: () => Deno.stdout.isTerminal() ? Deno.consoleSize().columns : undefined,
  onSignal(signal, heard) {
    Deno.addSignalListener(signal, heard);
    return () => Deno.removeSignalListener(signal, heard);
  },
  async connect(env) {
    const { createSystem } = await import("./src/daemon/mod.ts");
    return await createSystem({ env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
  },
};

Deno.exit(await main(world));
