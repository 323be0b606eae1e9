/** A home, a few agents, and terminals: real rnix commands next to each other, over one daemon. */
import { join } from "node:path";
import { removeFolder } from "../doubles/remove_folder.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
export const LAUNCHER = join(ROOT, "scripts/rnix");
const LEDGER_SERVER = join(ROOT, "tests/servers/ledger_server.ts");

/** Between two looks at something that tells nobody of its changes. */
const LOOK_MS = 10;

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** A command at work, and what it has said so far. */
export class Terminal {
  readonly child: Deno.ChildProcess;
  readonly ended: Promise<Ended>;
  #said = "";
  #waiting: (() => void)[] = [];

  constructor(child: Deno.ChildProcess) {
    this.child = child;
    const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
      let text = "";
      for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
        text += piece;
        this.#hear(piece);
      }
      return text;
    };
    this.ended = Promise.all([child.status, read(child.stdout), read(child.stderr)])
      .then(([{ code }, stdout, stderr]) => {
        this.#hear("\nEND");
        return { code, stdout, stderr };
      });
  }

  /** Resolves once `text` was said; rejects when the command ends without. */
  async until(text: string): Promise<void> {
    while (!this.#said.includes(text)) {
      if (this.#said.endsWith("\nEND")) throw new Error(`"${text}" was never said: ${this.#said}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #hear(piece: string): void {
    this.#said += piece;
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

export interface TerminalOptions {
  env?: { [name: string]: string };
  cwd?: string;
  /** A session of its own, so that all of it can be signalled. */
  session?: boolean;
  /** The program, where it isn't rnix itself. */
  program?: string;
}

export class TerminalStage implements AsyncDisposable {
  readonly folder: string;
  readonly home: string;

  /** `home`: where the state is, inside the stage's folder. */
  constructor(home = "home") {
    this.folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-terminals-" }));
    this.home = join(this.folder, home);
  }

  get ledger(): string {
    return join(this.folder, "ledger");
  }

  /** Writes an agent; `servers` are lines of YAML below `mcp.servers`. */
  agent(name: string, script: string, servers: string[] = []): void {
    const folder = join(this.folder, name);
    Deno.mkdirSync(folder);
    Deno.writeTextFileSync(join(folder, "script.yaml"), script);
    Deno.writeTextFileSync(
      join(folder, "agent.yaml"),
      `name: ${name}
description: For tests
instructions: Work.
models: { provider: scripted, script: script.yaml }
${
        servers.length === 0
          ? ""
          : `mcp:\n  servers:\n${servers.map((line) => `    ${line}\n`).join("")}`
      }`,
    );
  }

  /** Talks for ten seconds, or as many times as long. */
  talker(name = "talker", times = 1): void {
    const text = "a long answer. ".repeat(7 * times);
    this.agent(name, `stream: { size: 1, every: 100ms }\nturns:\n  - text: "${text}"\n`);
  }

  /** The ledger server as a line below `mcp.servers`, started by a shell that does `before` first. */
  ledgerServer(name: string, flags: string[] = [], before = ""): string {
    const run = [Deno.execPath(), "run", "-A", "--no-config", "--no-lock", "--no-check"];
    const command = [...run, LEDGER_SERVER, this.ledger, ...flags].join(" ");
    const args = JSON.stringify(["-c", `${before}exec ${command}`]);
    return `${name}: { command: sh, args: ${args} }`;
  }

  /** Starts `rnix ARGS…`. */
  open(args: string[], options: TerminalOptions = {}): Terminal {
    return new Terminal(
      new Deno.Command(options.program ?? LAUNCHER, {
        args,
        cwd: options.cwd ?? this.folder,
        env: { RNIX_HOME: this.home, NO_COLOR: "1", ...options.env },
        detached: options.session ?? false,
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn(),
    );
  }

  async rnix(...args: string[]): Promise<Ended> {
    return await this.open(args).ended;
  }

  /** `data` of the envelope. */
  async data<T>(...args: string[]): Promise<T> {
    const { stdout, stderr } = await this.rnix(...args, "--json");
    if (stdout === "") throw new Error(`rnix ${args.join(" ")} said nothing: ${stderr}`);
    return JSON.parse(stdout).data;
  }

  /** Looks again and again until `found` gives something; the test's own time is the limit. */
  async until<T>(found: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      const value = await found();
      if (value !== undefined) return value;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rnix("daemon", "stop");
    await removeFolder(this.folder);
  }
}
