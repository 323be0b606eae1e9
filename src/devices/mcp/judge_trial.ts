/**
 * One start of a server to see how it takes the opening of one era, past the SDK: what it answers is wanted as it comes, oddities included.
 *
 * A trial has the server's own `startup_timeout` in all; the era probe waits as long as a mount would. Whatever happens, the trial ends with the server closed and gives what was seen so far.
 */
import type { EraTrial, Paging, PingOutcome } from "../../base/server_verdict.ts";
import { type Clock, within } from "../../base/clock.ts";
import { SysError } from "../../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { Channel, type RawAnswer } from "../../mcp/channel.ts";
import type { ServerConnection } from "../../mcp/connection.ts";
import { Deadline, untilAbort } from "../../mcp/deadline.ts";
import { MODERN_VERSION, modernParams, probeLimitMs } from "../../mcp/handshake.ts";
import { listAll, type Page, pageOf } from "../../mcp/listing.ts";
import { ServerRequests } from "../../mcp/server_requests.ts";

/** The last version before 2026-07-28. */
const LEGACY_VERSION = "2025-11-25";
const METHOD_NOT_FOUND = -32601;
/** How long a `ping` is waited for. */
const PING_MS_MAX = 5_000;
const DETAIL_CHARS_MAX = 200;

/** What a trial needs. */
export interface TrialDeps {
  clock: Clock;
  clientInfo: { name: string; version: string };
  startupTimeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Starts the server and connects to it. */
  connect(): Promise<ServerConnection>;
  redact(text: string): string;
}

/** What a trial showed. */
export interface TrialResult {
  era: EraTrial;
  ping: PingOutcome;
  paging?: Paging;
}

/** An era that wasn't tried. */
export const NOT_TRIED: EraTrial = { spoken: false, versions: [], outcome: "not-tried" };

/** Tries `server/discover` of 2026-07-28. Never rejects. */
export async function tryModern(deps: TrialDeps): Promise<TrialResult> {
  return await new Trial(deps).run(async (trial) => {
    const params = modernParams(deps.clientInfo, new ServerRequests());
    const limitMs = probeLimitMs(deps.startupTimeoutMs);
    const answer = await trial.ask("server/discover", params, limitMs);
    trial.era = trial.eraOf(answer, (result) => {
      const versions = textsOf(result["supportedVersions"]);
      return { spoken: versions.includes(MODERN_VERSION), versions };
    });
    if (trial.era.spoken) trial.paging = await trial.walkTools(params);
  });
}

/** Tries `initialize`, then `ping`. Never rejects. */
export async function tryLegacy(deps: TrialDeps): Promise<TrialResult> {
  return await new Trial(deps).run(async (trial) => {
    const answer = await trial.ask("initialize", {
      protocolVersion: LEGACY_VERSION,
      capabilities: {},
      clientInfo: { ...deps.clientInfo },
    });
    trial.era = trial.eraOf(answer, (result) => {
      const versions = textsOf([result["protocolVersion"] ?? null]);
      return { spoken: versions.length > 0, versions };
    });
    if (!trial.era.spoken) return;
    await trial.beginLegacy(trial.era.versions[0] ?? LEGACY_VERSION);
    trial.ping = pingOf(await trial.ask("ping", {}, PING_MS_MAX));
    const { capabilities } = answer.kind === "result" && isJsonObject(answer.result)
      ? answer.result
      : {};
    const lists = isJsonObject(capabilities) && capabilities["tools"] !== undefined;
    if (lists && trial.ping !== "exited") trial.paging = await trial.walkTools({});
  });
}

/** An answer, or why there is none: `lost` where the connection goes on without it (HTTP: a status, a stream that ends). */
type Asked = RawAnswer | { kind: "silent" } | { kind: "exited" | "lost"; why: string };

class Trial {
  era: EraTrial = NOT_TRIED;
  ping: PingOutcome = "not-tried";
  paging: Paging | undefined;
  readonly #deps: TrialDeps;
  readonly #deadline: Deadline;
  #channel: Channel | undefined;

  constructor(deps: TrialDeps) {
    this.#deps = deps;
    this.#deadline = new Deadline(deps.clock, deps.startupTimeoutMs, deps.signal);
  }

  async run(steps: (trial: Trial) => Promise<void>): Promise<TrialResult> {
    let connection: ServerConnection | undefined;
    try {
      if (this.#deadline.signal.aborted) throw this.#deadline.signal.reason;
      connection = await this.#deps.connect();
      this.#channel = new Channel(connection);
      await untilAbort(connection.start(), this.#deadline.signal);
      await steps(this);
    } catch (thrown) {
      const detail = thrown instanceof Error ? thrown.message : String(thrown);
      if (this.era.outcome === "not-tried") {
        this.era = { ...NOT_TRIED, outcome: "exited", detail: this.#shown(detail) };
      }
    } finally {
      this.#deadline.release();
      await connection?.close();
    }
    const { era, ping, paging } = this;
    return { era, ping, ...paging === undefined ? {} : { paging } };
  }

  /** Sends one request and waits for its answer, within the limit and that of the trial. */
  async ask(method: string, params: JsonObject, limitMs = Infinity): Promise<Asked> {
    const channel = this.#channel;
    if (channel === undefined) return { kind: "exited", why: "it was never connected" };
    const tracked = channel.request(method, params);
    const answered = tracked.sent.then(() => tracked.answer, () => undefined)
      .then((answer): Asked => {
        if (answer !== undefined) return answer;
        const { ended } = channel.connection;
        return ended === undefined
          ? { kind: "lost", why: tracked.lostBecause() ?? "no answer can come" }
          : { kind: "exited", why: ended };
      });
    const limit = Math.min(limitMs, this.#deadline.remainingMs);
    const asked = within<Asked>(this.#deps.clock, limit, answered, () => {
      tracked.abandon();
      return { kind: "silent" };
    });
    return await untilAbort(asked, this.#deps.signal ?? this.#deadline.signal);
  }

  /** What an answer says of the era. */
  eraOf(
    answer: Asked,
    read: (result: JsonObject) => Pick<EraTrial, "spoken" | "versions">,
  ): EraTrial {
    switch (answer.kind) {
      case "silent":
        return { ...NOT_TRIED, outcome: "silent" };
      case "exited":
        return { ...NOT_TRIED, outcome: "exited", detail: this.#shown(answer.why) };
      case "lost":
        return { ...NOT_TRIED, outcome: "refused", detail: this.#shown(answer.why) };
      case "rpc-error": {
        const detail = this.#shown(`${answer.message} (${answer.code})`);
        return { ...NOT_TRIED, outcome: "refused", detail };
      }
      case "result": {
        const found = read(isJsonObject(answer.result) ? answer.result : {});
        return found.spoken
          ? { ...found, outcome: "answered" }
          : { ...found, outcome: "refused", detail: "its answer names no version of this era" };
      }
    }
  }

  /** Says that the handshake is over. */
  async beginLegacy(version: string): Promise<void> {
    const connection = this.#channel?.connection;
    connection?.setProtocolVersion?.(version);
    await connection?.send({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  /** Lists the tools as a mount does, and sees how the pages end. */
  async walkTools(params: JsonObject): Promise<Paging> {
    let pages = 0;
    let promisesMore = false;
    const names = new Set<string>();
    const fetchPage = async (cursor: string | undefined): Promise<Page> => {
      const given = cursor === undefined ? params : { ...params, cursor };
      const answer = await this.ask("tools/list", given);
      if (answer.kind !== "result") throw new Error("The page didn't come");
      const page = pageOf(answer.result, "tools");
      pages += 1;
      promisesMore = typeof page.nextCursor === "string";
      for (const item of page.items) names.add(nameOf(item));
      return page;
    };
    const walk = listAll({ server: "", what: "tools", key: "name", fetchPage });
    const end = await walk.then(
      (): Paging["end"] => promisesMore ? "repeated" : "complete",
      (thrown): Paging["end"] => thrown instanceof SysError ? "endless" : "failed",
    );
    return { pages, tools: names.size, end };
  }

  #shown(text: string): string {
    return this.#deps.redact(text.toWellFormed()).slice(0, DETAIL_CHARS_MAX);
  }
}

function pingOf(answer: Asked): PingOutcome {
  if (answer.kind === "result") return "answered";
  if (answer.kind === "lost") return "refused";
  if (answer.kind !== "rpc-error") return answer.kind;
  return answer.code === METHOD_NOT_FOUND ? "unknown-method" : "refused";
}

function nameOf(item: Json): string {
  const name = isJsonObject(item) ? item["name"] : undefined;
  return typeof name === "string" ? name : JSON.stringify(item);
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
