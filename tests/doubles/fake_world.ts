/** The world outside of the command line, in memory: what was printed, what a person types, which signals come. */
import { Input, main, Output, type World } from "../../src/cli/mod.ts";
import type { Upkeep } from "../../src/base/upkeep.ts";
import type { DaemonStatus } from "../../src/base/wire.ts";
import type { DaemonControl, HeardSignal } from "../../src/cli/mod.ts";
import { FakeSystem } from "./fake_system.ts";
import { VirtualClock } from "./virtual_clock.ts";

/** A sink that keeps what it is given; `fail` makes every later write fail. */
export class MemorySink {
  text = "";
  failure: Error | undefined;
  readonly #terminal: boolean;
  readonly #decoder = new TextDecoder();

  constructor(terminal: boolean) {
    this.#terminal = terminal;
  }

  // deno-lint-ignore require-await
  async write(bytes: Uint8Array): Promise<number> {
    if (this.failure) throw this.failure;
    this.text += this.#decoder.decode(bytes, { stream: true });
    return bytes.length;
  }

  isTerminal(): boolean {
    return this.#terminal;
  }
}

/** Lines that a person will type; reading past them waits for ever. */
export class MemorySource {
  readonly #lines: string[];
  readonly #terminal: boolean;

  constructor(lines: string[], terminal: boolean) {
    this.#lines = [...lines];
    this.#terminal = terminal;
  }

  read(buffer: Uint8Array): Promise<number | null> {
    const line = this.#lines.shift();
    if (line === undefined) return new Promise(() => {});
    return Promise.resolve(new TextEncoder().encodeInto(line, buffer).written);
  }

  isTerminal(): boolean {
    return this.#terminal;
  }
}

export interface WorldOptions {
  system?: FakeSystem;
  env?: { [name: string]: string };
  /** All three are terminals. */
  terminal?: boolean;
  /** Only stderr and stdin are; stdout is piped. */
  piped?: boolean;
  typed?: string[];
  platform?: string;
  columns?: number;
  rows?: number;
  connect?: World["connect"];
  upkeep?: Upkeep;
  /** An agent started it. */
  insideRun?: boolean;
}

/** A daemon that runs or doesn't. */
class FakeDaemon implements DaemonControl {
  readonly #world: FakeWorld;

  constructor(world: FakeWorld, env: { [name: string]: string }) {
    this.#world = world;
    world.connectedWith.push(env);
  }

  status(): Promise<DaemonStatus | undefined> {
    return Promise.resolve(this.#world.daemonStatus);
  }

  start(): Promise<DaemonStatus> {
    this.#world.daemonStatus ??= DAEMON_STATUS;
    return Promise.resolve(this.#world.daemonStatus);
  }

  stop(): Promise<{ runs: number } | undefined> {
    const ran = this.#world.daemonStatus;
    this.#world.daemonStatus = undefined;
    return Promise.resolve(ran);
  }

  run(): Promise<number> {
    return Promise.resolve(0);
  }
}

export const DAEMON_STATUS: DaemonStatus = {
  version: "0.1.0",
  protocol: 1,
  instance: "test",
  os_pid: 4711,
  runs: 2,
  clients: 1,
  uptime_ms: 61_000,
  socket: "/run/user/1000/rnix/abc.sock",
};

/** A command line under test. */
export class FakeWorld {
  readonly system: FakeSystem;
  readonly clock = new VirtualClock();
  readonly out: MemorySink;
  readonly err: MemorySink;
  /** Environments that were connected with, one for each connection. */
  readonly connectedWith: { [name: string]: string }[] = [];
  closed = 0;
  daemonStatus: DaemonStatus | undefined;
  readonly #options: WorldOptions;
  readonly #heard = new Map<HeardSignal, () => void>();

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.system = options.system ?? new FakeSystem();
    const watched = options.terminal === true || options.piped === true;
    this.out = new MemorySink(options.terminal === true);
    this.err = new MemorySink(watched);
  }

  /** Signals that are listened to now. */
  get listening(): HeardSignal[] {
    return [...this.#heard.keys()];
  }

  signal(signal: HeardSignal): void {
    this.#heard.get(signal)?.();
  }

  /** Runs one command line to its exit code. */
  async run(...args: string[]): Promise<number> {
    return await main(this.world(args));
  }

  world(args: string[]): World {
    const options = this.#options;
    const watched = options.terminal === true || options.piped === true;
    return {
      args,
      env: options.env ?? { HOME: "/home/u", NO_COLOR: "1" },
      cwd: "/project",
      platform: options.platform ?? "linux",
      runtime: "deno",
      uid: 1000,
      stdout: new Output(this.out),
      stderr: new Output(this.err),
      stdin: new Input(new MemorySource(options.typed ?? [], watched)),
      columns: () => options.columns,
      size: () =>
        options.columns === undefined
          ? undefined
          : { columns: options.columns, rows: options.rows ?? 24 },
      clock: this.clock,
      onSignal: (signal, heard) => {
        this.#heard.set(signal, heard);
        return () => this.#heard.delete(signal);
      },
      connect: options.connect ?? ((env) => {
        this.connectedWith.push(env);
        const close = () => Promise.resolve(void (this.closed += 1));
        return Promise.resolve({ system: this.system, close });
      }),
      daemon: (env) => new FakeDaemon(this, env),
      upkeep: () =>
        options.upkeep === undefined
          ? Promise.reject(new Error("the test gave no upkeep"))
          : Promise.resolve(options.upkeep),
      insideRun: () => Promise.resolve(options.insideRun === true),
    };
  }
}
