/**
 * The servers that the processes of one tree share: those whose expanded command, arguments, environment and folder, or address and headers, are equal.
 *
 * One that is over is forgotten at once; its successor waits until it is gone, so that there are never two.
 */
import { sha256Hex } from "../../base/json.ts";
import type { EraCache } from "../../mcp/handshake.ts";
import type { TransportMemory } from "../../mcp/http_connect.ts";
import type { McpServerLaunch } from "../../mcp/launch.ts";
import { factsOf, SharedServer, type SharedServerOptions } from "./shared_server.ts";

export class ServerPool {
  /** What is known of servers' eras, and of how addresses are spoken to. */
  readonly eras: EraCache = new Map();
  readonly transports: TransportMemory = new Map();
  readonly #servers = new Map<string, SharedServer>();
  readonly #closing = new Map<string, Promise<void>>();

  /** How many servers are held. */
  get size(): number {
    return this.#servers.size;
  }

  /** The server that is meant, to be joined in the same turn of the loop; one of its own where it isn't to be shared. */
  take(launch: McpServerLaunch, options: SharedServerOptions): SharedServer {
    if (launch.share === false) return new SharedServer(options);
    const key = sha256Hex(factsOf(launch));
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const server: SharedServer = new SharedServer({
      ...options,
      before: this.#closing.get(key),
      onOver: (closed) => {
        if (this.#servers.get(key) !== server) return;
        this.#servers.delete(key);
        this.#closing.set(key, closed);
        closed.finally(() => {
          if (this.#closing.get(key) === closed) this.#closing.delete(key);
        });
      },
    });
    this.#servers.set(key, server);
    return server;
  }
}
