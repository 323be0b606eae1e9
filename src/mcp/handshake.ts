/**
 * From a started server to an SDK client that speaks its era.
 *
 * Discovery of 2026-07-28 is tried first, then `initialize`. Any error and any silence means legacy; a server that dies of the probe is started again; a verdict from silence is not remembered, and if `initialize` fails after it (or a late answer shows that the server was only slow), the probe is made once more.
 */
import type { Client, Transport } from "@modelcontextprotocol/client";
import type { Clock } from "../base/clock.ts";
import { TIMER_MS_MAX, within } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import { Channel, type RawAnswer, type Tracked } from "./channel.ts";
import type { ServerConnection } from "./connection.ts";
import { type Deadline, untilAbort } from "./deadline.ts";
import { ServerRequests } from "./server_requests.ts";

export type Era = "modern" | "legacy";

/** Verdicts by server, for as long as the owner likes. Only `legacy` saves a round trip; it is dropped when it proves wrong. */
export type EraCache = Map<string, Era>;

const PROBE_MS_MAX = 5_000;
/** The version that the probe is made in. */
export const MODERN_VERSION = "2026-07-28";
/** JSON-RPC code of a request in a protocol version that the server doesn't take. */
const UNSUPPORTED_VERSION = -32022;
/** Versions that begin with `initialize`, newest first; the first is the one asked for. */
const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
const META_PREFIX = "io.modelcontextprotocol/";

/** A server that is spoken to. */
export interface Peer {
  client: Client;
  channel: Channel;
  era: Era;
}

export interface HandshakeOptions {
  /** Starts the server (again) and connects to it. */
  connect(): Promise<ServerConnection>;
  clock: Clock;
  deadline: Deadline;
  startupTimeoutMs: number;
  clientInfo: { name: string; version: string };
  eras: EraCache;
  eraKey: string;
  /** Answers what the server asks. */
  requests?: ServerRequests;
}

type Verdict =
  | { era: "modern"; discover: JsonObject }
  | { era: "legacy"; because: "error" | "silence" | "closed" }
  /** It speaks the modern version but refused the probe as if it came in another. */
  | { era: "legacy"; because: "version" };

/**
 * Rejects with a {@link HandshakeFailure} (what `connect` throws comes as it is); the last connection is still to be closed then. Its deadline aborting ends it at once.
 */
export async function handshake(options: HandshakeOptions): Promise<Peer> {
  return await new Handshake(options).run();
}

class Handshake {
  readonly #options: HandshakeOptions;
  readonly #requests: ServerRequests;
  #channel: Channel | undefined;
  #restarted = false;

  constructor(options: HandshakeOptions) {
    this.#options = options;
    this.#requests = options.requests ?? new ServerRequests();
  }

  async run(): Promise<Peer> {
    try {
      const known = this.#options.eras.get(this.#options.eraKey);
      return known === "legacy" ? await this.#asRemembered() : await this.#negotiate();
    } catch (thrown) {
      throw withConnection(thrown, this.#channel?.connection);
    }
  }

  /** Straight to `initialize`; where that is refused, the verdict is forgotten and the probe made after all. */
  async #asRemembered(): Promise<Peer> {
    const { eras, eraKey, deadline } = this.#options;
    const channel = await this.#open();
    try {
      return await this.#initialize(channel);
    } catch (thrown) {
      eras.delete(eraKey);
      if (deadline.signal.aborted || channel.connection.ended !== undefined) throw thrown;
      const verdict = await this.#verdict(this.#probe(channel), deadline.remainingMs);
      if (verdict.era === "modern") return await this.#adopt(channel, verdict.discover);
      throw thrown;
    }
  }

  async #negotiate(): Promise<Peer> {
    const { eras, eraKey, startupTimeoutMs } = this.#options;
    let channel = await this.#open();
    if (channel.connection.era === "legacy") return await this.#initialize(channel);
    const limitMs = probeLimitMs(startupTimeoutMs);
    let probe = this.#probe(channel);
    let verdict = await this.#verdict(probe, limitMs);
    if (verdict.era === "legacy" && verdict.because === "version") {
      probe = this.#probe(channel);
      verdict = await this.#verdict(probe, limitMs);
    }
    if (verdict.era === "modern") {
      try {
        return await this.#adopt(channel, verdict.discover);
      } catch (thrown) {
        // An answer that the SDK doesn't take is an error like any other: legacy.
        if (this.#options.deadline.signal.aborted) throw thrown;
      }
    } else if (verdict.because === "closed") channel = await this.#restart();
    try {
      const peer = await this.#initialize(channel, verdict.era === "modern" ? undefined : probe);
      if (verdict.era === "legacy" && verdict.because !== "silence") eras.set(eraKey, "legacy");
      return peer;
    } catch (thrown) {
      return await this.#secondChance(channel, probe, thrown);
    }
  }

  /** `initialize` failed: the server was slow and modern after all, or it died of the probe late. */
  async #secondChance(channel: Channel, probe: Tracked, thrown: unknown): Promise<Peer> {
    const { deadline } = this.#options;
    if (deadline.signal.aborted) throw thrown;
    if (channel.connection.ended !== undefined) {
      if (this.#restarted) throw thrown;
      return await this.#initialize(await this.#restart());
    }
    const late = await this.#verdict(probe, 0);
    if (late.era === "modern") return await this.#adopt(channel, late.discover);
    const again = await this.#verdict(this.#probe(channel), deadline.remainingMs);
    if (again.era === "modern") return await this.#adopt(channel, again.discover);
    throw thrown;
  }

  async #open(): Promise<Channel> {
    const { deadline } = this.#options;
    const connection = await this.#options.connect();
    this.#channel = new Channel(connection, this.#requests);
    if (deadline.signal.aborted) throw deadline.signal.reason;
    await connection.start();
    return this.#channel;
  }

  async #restart(): Promise<Channel> {
    this.#restarted = true;
    await this.#channel?.connection.close();
    return await this.#open();
  }

  #probe(channel: Channel): Tracked {
    return channel.request(
      "server/discover",
      modernParams(this.#options.clientInfo, this.#requests),
    );
  }

  /** No answer on a connection that goes on (HTTP: a status, a reset) is an error; only one that ended makes a restart. */
  async #verdict(probe: Tracked, limitMs: number): Promise<Verdict> {
    const { clock, deadline } = this.#options;
    const answer = probe.sent.then(() => probe.answer, () => undefined);
    const verdict = within<Verdict>(
      clock,
      limitMs,
      answer.then((given) => {
        const isOpen = this.#channel?.connection.ended === undefined;
        return given === undefined && isOpen && probe.lostBecause() !== undefined
          ? { era: "legacy", because: "error" }
          : verdictOf(given);
      }),
      () => ({ era: "legacy", because: "silence" }),
    );
    return await untilAbort(verdict, deadline.signal);
  }

  /** Where the server refuses the version and lists others, one of those is tried, once. */
  async #initialize(channel: Channel, probe?: Tracked): Promise<Peer> {
    try {
      return await this.#initializeAs(await this.#newClient(), channel, probe);
    } catch (thrown) {
      const listed = listedVersion(thrown);
      const over = this.#options.deadline.signal.aborted ||
        channel.connection.ended !== undefined;
      if (listed === undefined || over) throw thrown;
      const versions = [listed, ...LEGACY_VERSIONS.filter((version) => version !== listed)];
      return await this.#initializeAs(await this.#newClient(versions), channel, probe);
    }
  }

  async #initializeAs(client: Client, channel: Channel, probe?: Tracked): Promise<Peer> {
    const stop = new AbortController();
    const connected = this.#attach(client, channel.lend(), { kind: "legacy" }, stop.signal);
    const modernAfterAll = new Promise<never>((_, reject) => {
      probe?.answer.then((answer) => {
        if (verdictOf(answer).era === "modern") reject(new Error("The server is a modern one"));
      });
    });
    try {
      await untilAbort(Promise.race([connected, modernAfterAll]), this.#options.deadline.signal);
    } catch (thrown) {
      stop.abort();
      throw thrown;
    }
    return { client, channel, era: "legacy" };
  }

  async #adopt(channel: Channel, discover: JsonObject): Promise<Peer> {
    const client = await this.#newClient();
    await this.#attach(client, channel.lend(), { kind: "modern", discover }, undefined);
    this.#options.eras.set(this.#options.eraKey, "modern");
    return { client, channel, era: "modern" };
  }

  async #attach(
    client: Client,
    transport: Transport,
    prior: Json,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    await client.connect(transport, {
      // The SDK checks what it is given here, as it would check what comes over the wire.
      prior: prior as never,
      timeout: TIMER_MS_MAX,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** The first of `versions` is the one it asks for. */
  async #newClient(versions?: string[]): Promise<Client> {
    const { Client } = await loadClient();
    return new Client({ ...this.#options.clientInfo }, {
      capabilities: this.#requests.capabilities,
      ...(versions === undefined ? {} : { supportedProtocolVersions: versions }),
    });
  }
}

/** How long the era probe is waited for, milliseconds. */
export function probeLimitMs(startupTimeoutMs: number): number {
  return Math.min(PROBE_MS_MAX, startupTimeoutMs / 3);
}

/** What every request of 2026-07-28 carries, for one that is sent past the SDK. */
export function modernParams(
  clientInfo: { name: string; version: string },
  requests: ServerRequests,
): JsonObject {
  return {
    _meta: {
      [`${META_PREFIX}protocolVersion`]: MODERN_VERSION,
      [`${META_PREFIX}clientInfo`]: { ...clientInfo },
      [`${META_PREFIX}clientCapabilities`]: requests.capabilities,
    },
  };
}

type ClientModule = typeof import("@modelcontextprotocol/client");
let clientModule: Promise<ClientModule> | undefined;

/** The SDK, loaded when a server is mounted and not before. */
export function loadClient(): Promise<ClientModule> {
  clientModule ??= import("@modelcontextprotocol/client");
  return clientModule;
}

function verdictOf(answer: RawAnswer | undefined): Verdict {
  if (answer === undefined) return { era: "legacy", because: "closed" };
  if (answer.kind === "rpc-error") return { era: "legacy", because: causeOf(answer) };
  if (!isJsonObject(answer.result)) return { era: "legacy", because: "error" };
  const { supportedVersions } = answer.result;
  return Array.isArray(supportedVersions) && supportedVersions.includes(MODERN_VERSION)
    ? { era: "modern", discover: answer.result }
    : { era: "legacy", because: "error" };
}

/** An error that lists the modern version among those that the server takes is worth a second probe. */
function causeOf({ code, data }: Extract<RawAnswer, { kind: "rpc-error" }>): "error" | "version" {
  const supported = isJsonObject(data) ? data["supported"] : undefined;
  return code === UNSUPPORTED_VERSION && Array.isArray(supported) &&
      supported.includes(MODERN_VERSION)
    ? "version"
    : "error";
}

/** A version besides the one asked for that a refusal of `initialize` lists, the newest. */
function listedVersion(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const data = "data" in thrown ? JSON.stringify(thrown.data) ?? "" : "";
  const named: readonly string[] = `${thrown.message} ${data}`.match(/\b20\d\d-\d\d-\d\d\b/g) ?? [];
  return LEGACY_VERSIONS.slice(1).find((version) => named.includes(version));
}

/** A failed handshake with the connection it failed on, for the message. */
export class HandshakeFailure extends Error {
  readonly connection: ServerConnection | undefined;

  constructor(cause: unknown, connection: ServerConnection | undefined) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = "HandshakeFailure";
    this.connection = connection;
  }
}

function withConnection(thrown: unknown, connection: ServerConnection | undefined): Error {
  if (thrown instanceof SysError && connection === undefined) return thrown;
  return new HandshakeFailure(thrown, connection);
}
