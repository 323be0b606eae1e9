/** Servers that lie in memory: their tools are functions of the test, and they know whether they are open. */
import { type Clock, sleep } from "../../src/base/clock.ts";
import type { EffectClass, Risk, ToolRules } from "../../src/base/effect.ts";
import { SysError } from "../../src/base/errors.ts";
import type { Json } from "../../src/base/json.ts";
import type { Mount, MountDriver, MountFacts, MountSpec } from "../../src/kernel/mount.ts";
import type { CallOptions, DeviceOutcome, ToolDefinition } from "../../src/vfs/device.ts";

/** One call of a tool: what it was given, and means to answer with. */
export interface ToolCall extends CallOptions {
  input: Json;
  clock: Clock;
  /** Calls of this tool so far, this one included. */
  times: number;
}

export type ToolFunction = (call: ToolCall) => DeviceOutcome | Promise<DeviceOutcome>;

export interface ToolDouble {
  does?: ToolFunction;
  effect?: EffectClass;
  risk?: Risk;
  description?: string;
}

export interface ServerOptions {
  name?: string;
  tools?: { [tool: string]: ToolDouble };
  required?: boolean;
  mountMs?: number;
  /** How long it takes to give up a mount that is aborted. */
  abortMs?: number;
  /** Why it can't be mounted. */
  fails?: SysError;
  allow?: string[];
  sensitive?: string[];
  outputTokensMax?: number;
}

/** A server, whichever processes have it mounted. */
export class ServerDouble {
  readonly name: string;
  readonly options: ServerOptions;
  tools: { [tool: string]: ToolDouble };
  fails: SysError | undefined;
  /** Mounts that are open now, and those that ever were. */
  open = 0;
  mounts = 0;
  aborted = 0;
  readonly calls: { tool: string; input: Json; key: string }[] = [];
  #live: Mount[] = [];

  constructor(options: ServerOptions = {}) {
    this.options = options;
    this.name = options.name ?? "world";
    this.tools = options.tools ?? {};
    this.fails = options.fails;
  }

  get spec(): MountSpec {
    const { required = true, allow, sensitive = [], outputTokensMax } = this.options;
    const named = Object.entries(this.tools);
    const rules: ToolRules = {
      ...(allow === undefined ? {} : { allow }),
      effects: Object.fromEntries(
        named.flatMap(([name, { effect }]) => effect ? [[name, effect]] : []),
      ),
      risk: Object.fromEntries(named.flatMap(([name, { risk }]) => risk ? [[name, risk]] : [])),
      sensitive,
    };
    return { server: this.name, required, rules, outputTokensMax, config: null };
  }

  /** Its tools are others from now on, and it says so. */
  change(tools: { [tool: string]: ToolDouble }): void {
    this.tools = tools;
    for (const mount of this.#live) mount.onChange?.(this.#facts());
  }

  async mount(clock: Clock, signal: AbortSignal): Promise<Mount> {
    try {
      await sleep(clock, this.options.mountMs ?? 0, signal);
    } catch {
      this.aborted += 1;
      await sleep(clock, this.options.abortMs ?? 0);
      throw new SysError("DRIVER", "Mounting was aborted");
    }
    if (this.fails !== undefined) throw this.fails;
    this.open += 1;
    this.mounts += 1;
    let closed = false;
    const mount: Mount = {
      facts: this.#facts(),
      health: { state: "connected", sinceMs: 0, attempts: 0, lastError: undefined },
      onChange: undefined,
      open: (path) => {
        const tool = decodeURIComponent(path.slice("tools/".length));
        return {
          write: (input, options) => this.#call(clock, tool, { input, options }),
          read: () => Promise.resolve(new Uint8Array()),
          close: () => {},
        };
      },
      stat: (path) => {
        const name = decodeURIComponent(path.slice("tools/".length));
        if (path === "" || path === "tools") return { kind: "folder", path };
        if (path.startsWith("resources/")) return { kind: "file", path, isRemote: true };
        if (Object.hasOwn(this.tools, name)) return { kind: "tool", path };
        throw new SysError("NOT_FOUND", `No "${path}"`, { hint: "There is: tools" });
      },
      list: (path) => Promise.resolve(path === "" ? ["tools"] : Object.keys(this.tools)),
      close: () => {
        if (!closed) this.open -= 1;
        closed = true;
        return Promise.resolve();
      },
    };
    this.#live.push(mount);
    return mount;
  }

  async #call(
    clock: Clock,
    tool: string,
    { input, options }: { input: Json; options: CallOptions },
  ): Promise<DeviceOutcome> {
    this.calls.push({ tool, input, key: options.idempotencyKey });
    const times = this.calls.filter((call) => call.tool === tool).length;
    return await (this.tools[tool]?.does ?? (() => ok("done")))({
      ...options,
      input,
      clock,
      times,
    });
  }

  #facts(): MountFacts {
    return {
      era: "modern",
      protocolVersion: "2026-07-28",
      tools: Object.entries(this.tools).sort(([a], [b]) => a < b ? -1 : 1).map(([name, tool]) =>
        definition(this.name, name, tool)
      ),
      setAside: {},
    };
  }
}

function definition(server: string, name: string, { description }: ToolDouble): ToolDefinition {
  return {
    name,
    modelName: `mcp__${server}__${name}`,
    ...(description === undefined ? {} : { description }),
    inputSchema: { type: "object" },
  };
}

export class ServerDoubles {
  readonly specs: MountSpec[];
  readonly driver: MountDriver;

  constructor(clock: Clock, servers: readonly ServerDouble[]) {
    this.specs = servers.map((server) => server.spec);
    this.driver = {
      mount: async ({ server }, { signal }) => {
        const found = servers.find(({ name }) => name === server);
        if (found === undefined) throw new Error(`There is no server "${server}"`);
        return await found.mount(clock, signal);
      },
    };
  }
}

export function ok(text: string): DeviceOutcome {
  return { kind: "answer", isError: false, content: [{ type: "text", text }] };
}

export function lost(
  cause: "disconnected" | "timeout" | "cancelled" = "disconnected",
  late: Promise<DeviceOutcome | undefined> = Promise.resolve(undefined),
): DeviceOutcome {
  const error = new SysError("DEVICE_DISCONNECTED", `Lost: ${cause}`);
  return { kind: "unknown", cause, error, late };
}

/** Takes `ms`; when cancelled, as a device has to: answers within the grace, or is unknown. */
export function taking(ms: number, text = "done"): ToolFunction {
  return async ({ clock, signal, cancelGraceMs }) => {
    const endMs = clock.monotonic() + ms;
    try {
      await sleep(clock, ms, signal);
    } catch {
      const leftMs = endMs - clock.monotonic();
      await sleep(clock, Math.min(leftMs, cancelGraceMs));
      if (leftMs > cancelGraceMs) return lost("cancelled");
    }
    return ok(text);
  };
}
