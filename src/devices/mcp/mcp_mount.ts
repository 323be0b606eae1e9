/** A mounted MCP server: its tree of nodes, its facts, and what happens when its tools change. Whether it lives is its supervisor's business. */
import { SysError } from "../../base/errors.ts";
import { isJsonObject, type Json } from "../../base/json.ts";
import type { Clock } from "../../base/clock.ts";
import type { Mount, MountFacts, MountHealth } from "../../kernel/mount.ts";
import type { McpServerLaunch } from "../../mcp/launch.ts";
import type { McpSession } from "../../mcp/session.ts";
import type { DeviceFile, NodeFacts, ToolDefinition } from "../../vfs/device.ts";
import type { PingRules } from "./mount_state.ts";
import { type NodeHost, ReadOnlyNode, ToolNode } from "./nodes.ts";
import { Supervisor } from "./supervisor.ts";
import { buildToolTable, sameTools, type ToolTable } from "./tool_table.ts";

const PATHS_SHOWN = 20;

export interface McpMountOptions {
  launch: McpServerLaunch;
  clock: Clock;
  session: McpSession;
  /** Starts the server anew. */
  start(signal: AbortSignal): Promise<McpSession>;
  ping?: PingRules | undefined;
  /** Part of the jitter to add to a pause, 0 to 1. */
  jitter?: (() => number) | undefined;
  onWarning?: ((message: string) => void) | undefined;
  /** A change of the connection, as the end of a sentence that begins with the server; a warning is for who watches, too. */
  onNote?: ((text: string, isWarning: boolean) => void) | undefined;
  /** The mount is closed and nothing of its server is left. */
  onClosed?: (() => Promise<void>) | undefined;
}

export class McpMount implements Mount, NodeHost {
  onChange: ((facts: MountFacts) => void) | undefined;
  readonly server: string;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly #supervisor: Supervisor;
  readonly #onWarning: (message: string) => void;
  readonly #onClosed: (() => Promise<void>) | undefined;
  #table: ToolTable;
  #relisting = false;
  #relistAgain = false;

  constructor(options: McpMountOptions) {
    const { launch, session, onWarning = () => {}, onClosed, ...supervision } = options;
    this.server = launch.server;
    this.timeoutMs = launch.timeoutMs;
    this.maxTimeoutMs = launch.maxTimeoutMs;
    this.#onWarning = onWarning;
    this.#onClosed = onClosed;
    this.#table = tableOf(session, session.tools);
    this.#supervisor = new Supervisor(session, {
      ...supervision,
      server: launch.server,
      onRevived: (revived) => {
        this.#follow(revived);
        this.#adopt(tableOf(revived, revived.tools));
      },
    });
    this.#follow(session);
  }

  get facts(): MountFacts {
    const { era, protocolVersion, serverInfo } = this.#supervisor.latest;
    return {
      era,
      protocolVersion,
      ...(serverInfo === undefined ? {} : { serverInfo }),
      tools: this.#table.tools,
      setAside: this.#table.setAside,
    };
  }

  get health(): MountHealth {
    return this.#supervisor.health;
  }

  open(path: string): DeviceFile {
    const clean = path.replace(/^\/+|\/+$/g, "");
    if (clean === "") {
      return new ReadOnlyNode("/", () => Promise.resolve(JSON.stringify(this.#roots())));
    }
    if (clean === "tools") {
      return new ReadOnlyNode(clean, () => Promise.resolve(JSON.stringify(this.#table.tools)));
    }
    if (clean.startsWith("tools/")) {
      const tool = this.#find(clean.slice("tools/".length));
      if (tool !== undefined) return new ToolNode(this, tool.name);
    }
    if (this.#hasResources()) {
      if (clean === "resources") return new ReadOnlyNode(clean, () => this.#listResources());
      const uri = decoded(clean.match(/^resources\/(.+)$/)?.[1]);
      if (uri !== undefined) return new ReadOnlyNode(clean, () => this.#readResource(uri));
    }
    throw this.#notFound(clean);
  }

  stat(path: string): NodeFacts {
    const clean = path.replace(/^\/+|\/+$/g, "");
    if (clean === "" || this.#roots().includes(clean)) return { kind: "folder", path: clean };
    const tool = clean.startsWith("tools/") ? this.#find(clean.slice("tools/".length)) : undefined;
    if (tool !== undefined) return { kind: "tool", path: `tools/${encodeURIComponent(tool.name)}` };
    if (this.#hasResources() && /^resources\/./s.test(clean)) return { kind: "file", path: clean };
    throw this.#notFound(clean);
  }

  async list(path: string): Promise<string[]> {
    const { kind, path: clean } = this.stat(path);
    if (kind !== "folder") throw new SysError("INVALID", `It is a ${kind} and no folder`);
    if (clean === "") return this.#roots();
    if (clean === "tools") return this.#table.tools.map(({ name }) => encodeURIComponent(name));
    const session = await this.session();
    const resources = await session.listResources(this.timeoutMs);
    return resources.flatMap((resource) =>
      isJsonObject(resource) && typeof resource["uri"] === "string"
        ? [encodeURIComponent(resource["uri"])]
        : []
    );
  }

  #notFound(clean: string): SysError {
    return new SysError("NOT_FOUND", `No "${clean}" on server "${this.server}"`, {
      device: clean,
      hint: `There is: ${this.#paths()}`,
    });
  }

  async close(): Promise<void> {
    await this.#supervisor.close();
    await this.#onClosed?.();
  }

  tool(name: string): ToolDefinition | undefined {
    return this.#table.tools.find((tool) => tool.name === name);
  }

  session(signal?: AbortSignal): Promise<McpSession> {
    return this.#supervisor.current(signal);
  }

  /** By its own name, percent-encoded or not, or by the model's name. */
  #find(name: string): ToolDefinition | undefined {
    const plain = decoded(name) ?? name;
    return this.tool(name) ?? this.tool(plain) ??
      this.#table.tools.find((tool) => tool.modelName === name);
  }

  #hasResources(): boolean {
    return this.#supervisor.latest.capabilities["resources"] !== undefined;
  }

  #roots(): string[] {
    const hasTools = this.#supervisor.latest.capabilities["tools"] !== undefined;
    return [...(hasTools ? ["tools"] : []), ...(this.#hasResources() ? ["resources"] : [])];
  }

  #paths(): string {
    const paths = [...this.#roots(), ...this.#table.tools.map((tool) => `tools/${tool.name}`)];
    const more = paths.length - PATHS_SHOWN;
    return paths.slice(0, PATHS_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
  }

  async #listResources(): Promise<string> {
    const session = await this.session();
    return JSON.stringify(await session.listResources(this.timeoutMs));
  }

  async #readResource(uri: string): Promise<string> {
    const session = await this.session();
    return resourceText(await session.readResource(uri, this.timeoutMs));
  }

  #follow(session: McpSession): void {
    session.onToolsChanged = () => void this.#relist(session);
  }

  /** Lists again; news during that lead to one more round, however many there were. */
  async #relist(session: McpSession): Promise<void> {
    if (this.#relisting) {
      this.#relistAgain = true;
      return;
    }
    this.#relisting = true;
    try {
      do {
        this.#relistAgain = false;
        const listed = await session.listTools(this.timeoutMs);
        if (session === this.#supervisor.latest) this.#adopt(tableOf(session, listed));
      } while (this.#relistAgain && session.alive);
    } catch (thrown) {
      // Of a server that is gone there is nothing to list; one that comes back is listed anew.
      if (this.#supervisor.closed || !session.alive) return;
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      this.#onWarning(`The changed tools of "${this.server}" could not be listed: ${why}`);
    } finally {
      this.#relisting = false;
    }
  }

  #adopt(table: ToolTable): void {
    if (sameTools(table, this.#table)) return;
    this.#table = table;
    this.onChange?.(this.facts);
  }
}

function decoded(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The text of a resource that is only text, else the JSON of its contents. */
function resourceText(result: Json): string {
  const contents = isJsonObject(result) ? result["contents"] : undefined;
  if (!Array.isArray(contents)) return JSON.stringify(result);
  const texts = contents.map((part) =>
    isJsonObject(part) && typeof part["text"] === "string" ? part["text"] : undefined
  );
  return texts.length > 0 && texts.every((text) => text !== undefined)
    ? texts.join("\n")
    : JSON.stringify(contents);
}

function tableOf(session: McpSession, listed: readonly Json[]): ToolTable {
  return buildToolTable(session.server, listed, (definition) => session.toolFault(definition));
}
