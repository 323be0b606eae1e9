/** A made-up machine for commands that look at files: a project, a home, and programs; nothing else is on the PATH. */
import { Input, main } from "../../src/cli/mod.ts";
import { SplitSystem } from "../../src/client/split_system.ts";
import { createReader } from "../../src/daemon/reader.ts";
import type { FakeSystem } from "./fake_system.ts";
import { FakeWorld } from "./fake_world.ts";

/** The least that is a program. */
export const SCRIPT = "#!/bin/sh\n";

/** Text of a file, or where a link leads. */
export type Content = string | { link: string };

/** How a command line ended. */
export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Files in a folder of their own, and command lines that are run among them. */
export class Machine {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-check-" }));
  readonly bin = `${this.folder}/bin`;
  /** What a command that needs the running system gets. */
  system: FakeSystem | undefined;

  constructor(files: { [path: string]: Content }) {
    for (const folder of ["project", "bin", "home"]) Deno.mkdirSync(`${this.folder}/${folder}`);
    for (const [path, content] of Object.entries(files)) this.put(path, content);
  }

  put(path: string, content: Content): void {
    const place = `${this.folder}/${path}`;
    Deno.mkdirSync(place.replace(/[^/]*$/, ""), { recursive: true });
    if (typeof content !== "string") Deno.symlinkSync(content.link, place);
    else Deno.writeTextFileSync(place, content, path.startsWith("bin/") ? { mode: 0o755 } : {});
  }

  /** The system without a daemon: what only reads. */
  #reading(env: { [name: string]: string }): SplitSystem {
    const none = () => Promise.reject(new Error("Nothing here needs a daemon"));
    const whole = { HOME: `${this.folder}/home`, ...env };
    const reader = () => Promise.resolve(createReader(whole, Deno.uid() ?? 0));
    return new SplitSystem({ live: none, found: none, reader });
  }

  /** Runs one command line in the project; folders that change with every test are told by their names. */
  async rnix(
    args: string[],
    env: { [name: string]: string } = {},
    stdin: string[] = [],
  ): Promise<Ended> {
    const fake = new FakeWorld({
      env: { PATH: this.bin, HOME: `${this.folder}/home`, NO_COLOR: "1", ...env },
      connect: () =>
        this.system === undefined
          ? Promise.resolve({ system: this.#reading(env), close: () => Promise.resolve() })
          : Promise.resolve({ system: this.system, close: () => Promise.resolve() }),
    });
    const world = { ...fake.world(args), stdin: new Input(piped(stdin)) };
    const code = await main({ ...world, cwd: `${this.folder}/project`, uid: Deno.uid() ?? 0 });
    const plain = (text: string) => text.replaceAll(this.folder, "");
    return { code, stdout: plain(fake.out.text), stderr: plain(fake.err.text) };
  }
}

/** A machine with files, by paths such as `project/agents/a/agent.yaml`, `home/…` and `bin/…`; gone afterwards. */
export async function onMachine(
  files: { [path: string]: Content },
  work: (machine: Machine) => Promise<void>,
): Promise<void> {
  const machine = new Machine(files);
  try {
    await work(machine);
  } finally {
    Deno.removeSync(machine.folder, { recursive: true });
  }
}

/** Pieces that come through a pipe, and its end. */
function piped(pieces: readonly string[]) {
  const left = [...pieces];
  return {
    read(buffer: Uint8Array): Promise<number | null> {
      const piece = left.shift();
      const { written } = new TextEncoder().encodeInto(piece ?? "", buffer);
      return Promise.resolve(piece === undefined ? null : written);
    },
    isTerminal: () => false,
  };
}
