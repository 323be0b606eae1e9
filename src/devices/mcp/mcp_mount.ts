/** A mounted MCP server as one process has it: its tree of nodes, its facts, its limits. The server itself may be shared with other processes; whether it lives is its supervisor's business. */
import { SysError } from "../../base/errors.ts";
import { isJsonObject, type Json } from "../../base/json.ts";
import type { MountHealth } from "../../base/mount_health.ts";
import type { Mount, MountFacts } from "../../kernel/mount.ts";
import type { McpServerLaunch } from "../../mcp/launch.ts";
import type { McpSession } from "../../mcp/session.ts";
import type { DeviceFile, NodeFacts, ToolDefinition } from "../../vfs/device.ts";
import { type NodeHost, ReadOnlyNode, ToolNode } from "./nodes.ts";
import { ResourceToolNode, resourceTools } from "./resource_tools.ts";
import type { Holder, SharedServer } from "./shared_server.ts";
import { buildToolTable, sameTools, type ToolTable } from "./tool_table.ts";

const PATHS_SHOWN = 20;

export interface McpMountOptions {
  launch: McpServerLaunch;
  server: SharedServer;
  redact?: ((text: string) => string) | undefined;
  onWarning?: ((message: string) => void) | undefined;
}

export class McpMount implements Mount, NodeHost, Holder {
  onChange: ((facts: MountFacts) => void) | undefined;
  readonly launch: McpServerLaunch;
  readonly #shared: SharedServer;
  readonly #redact: (text: string) => string;
  readonly #onWarning: (message: string) => void;
  readonly #closing = new AbortController();
  #table: ToolTable = { tools: [], setAside: {} };
  #isUp = false;

  constructor({ launch, server, redact, onWarning }: McpMountOptions) {
    this.launch = launch;
    this.#shared = server;
    this.#redact = redact ?? ((text) => text);
    this.#onWarning = onWarning ?? (() => {});
  }

  /** Joins the server, which the first to come starts. Rejects with a SysError, or the signal's reason; it isn't mounted then. */
  async begin(signal: AbortSignal): Promise<void> {
    await this.#shared.join(this, signal);
    this.#table = this.#tableNow();
    this.#isUp = true;
  }

  get server(): string {
    return this.launch.server;
  }

  get timeoutMs(): number {
    return this.launch.timeoutMs;
  }

  get maxTimeoutMs(): number {
    return this.launch.maxTimeoutMs;
  }

  get facts(): MountFacts {
    const { era, protocolVersion, serverInfo } = this.#latest;
    return {
      era,
      protocolVersion,
      ...(serverInfo === undefined ? {} : { serverInfo }),
      tools: [...this.#table.tools, ...this.#resourceTools()],
      setAside: this.#table.setAside,
    };
  }

  get health(): MountHealth {
    const { health } = this.#shared.supervisor;
    return this.#closed ? { ...health, state: "closed" } : health;
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
      if (tool?.effect !== undefined) return new ResourceToolNode(this, tool);
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
    if (clean === "resources" && this.#hasResources()) {
      return { kind: "folder", path: clean, isRemote: true };
    }
    if (clean === "" || this.#roots().includes(clean)) return { kind: "folder", path: clean };
    const tool = clean.startsWith("tools/") ? this.#find(clean.slice("tools/".length)) : undefined;
    if (tool !== undefined) return { kind: "tool", path: `tools/${encodeURIComponent(tool.name)}` };
    if (this.#hasResources() && /^resources\/./s.test(clean)) {
      return { kind: "file", path: clean, isRemote: true };
    }
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
    this.#closing.abort(this.#unmounted());
    await this.#shared.leave(this);
  }

  redact(text: string): string {
    return this.#redact(text);
  }

  onWarning(message: string): void {
    this.#onWarning(message);
  }

  onListed(): void {
    if (!this.#isUp || this.#closed) return;
    const table = this.#tableNow();
    if (sameTools(table, this.#table)) return;
    this.#table = table;
    this.onChange?.(this.facts);
  }

  tool(name: string): ToolDefinition | undefined {
    return this.#table.tools.find((tool) => tool.name === name);
  }

  async session(signal?: AbortSignal): Promise<McpSession> {
    if (this.#closed) throw this.#unmounted();
    return await this.#shared.supervisor.current(signal ?? this.#closing.signal, this.server);
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** The session as it is now, alive or not. */
  get #latest(): McpSession {
    return this.#shared.supervisor.latest;
  }

  #unmounted(): SysError {
    return new SysError("DEVICE_DISCONNECTED", `Server "${this.server}" is unmounted`);
  }

  #tableNow(): ToolTable {
    const session = this.#latest;
    return buildToolTable(
      this.server,
      this.#shared.listed,
      (definition) => session.toolFault(definition),
    );
  }

  /** By its own name, percent-encoded or not, or by the model's name. */
  #find(name: string): ToolDefinition | undefined {
    const plain = decoded(name) ?? name;
    const all = this.facts.tools;
    return this.tool(name) ?? all.find((tool) => tool.name === plain) ??
      all.find((tool) => tool.modelName === name);
  }

  /** By the names of tools that rnix adds. A server whose own tool has such a name keeps it. */
  #resourceTools(): ToolDefinition[] {
    if (!this.#hasResources()) return [];
    return resourceTools(this.server).filter(({ name }) => this.tool(name) === undefined);
  }

  #hasResources(): boolean {
    return this.#latest.capabilities["resources"] !== undefined;
  }

  #roots(): string[] {
    const hasTools = this.#latest.capabilities["tools"] !== undefined;
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
