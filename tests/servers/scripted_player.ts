/**
 * Plays a scenario: from a message of the client to what is said to it, whatever the transport.
 *
 * The player keeps what a server keeps (uses per step, the page of a listing, its tools, its own open questions); an {@link Exchange} is the way back for one message, and does what only its transport can.
 */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { block, type Fields, isFields, pause, type Value } from "./rpc_stdio.ts";
import { type Ask, type Scenario, type Step, stepOfUse } from "./scripted_scenario.ts";

export interface Exchange {
  /** A message to the client: the answer, or one before it. */
  send(message: Fields): Promise<void> | void;
  /** Whether the message may come in at all; asked before anything is done. */
  admit?(step: Step): "over" | "goes on";
  /** What only the transport does, before anything is said; `over`: there is nothing more to say. */
  perform(step: Step): Promise<"over" | "goes on">;
  /** More may be said after this: it stays open. */
  hold?(): void;
  /** Ends the server. */
  exit(code: number): Promise<void> | void;
}

/** A request or notification of the client. */
interface Incoming {
  id: Value | undefined;
  method: string;
  params: Fields;
}

const NOT_FOUND = { error: { code: -32601, message: "Method not found" } };
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
const CACHE_HINTS = { ttlMs: 0, cacheScope: "private" };

export class ScenarioPlayer {
  readonly scenario: Scenario;
  readonly #uses = new Map<string, number>();
  /** Who is told of changes, by the id of the request that asked for it. */
  readonly #subscribers = new Map<Value, Exchange>();
  readonly #asked = new Map<Value, (answer: Fields) => void>();
  #tools: Value[];
  #asks = 0;
  #page = 0;

  /** Begins a life of the scenario. */
  constructor(scenario: Scenario) {
    this.scenario = lifeOf(scenario);
    this.#tools = this.scenario.tools ?? [];
  }

  /** What is done before the first message is read. */
  async start(exchange: Exchange): Promise<void> {
    const step = this.scenario.start;
    if (step === undefined) return;
    const request = { id: undefined, method: "start", params: {} };
    await this.#act(step, request);
    await exchange.perform(step);
    await this.#say(step, request, exchange);
    if (step.exit !== undefined) await exchange.exit(step.exit);
  }

  /** Takes one message; resolves when all that it leads to has been said. */
  async take(message: Fields, exchange: Exchange): Promise<void> {
    const { record } = this.scenario;
    if (record !== undefined) appendLine(record, JSON.stringify(message));
    const { id, method } = message;
    if (typeof method !== "string") {
      if (id !== undefined) this.#asked.get(id)?.(message);
      return;
    }
    const params = isFields(message["params"]) ? message["params"] : {};
    const request: Incoming = { id, method, params };
    await this.#play(this.#stepFor(request) ?? {}, request, exchange);
  }

  /** The step for this use of a verb of HTTP. */
  verbStep(verb: "GET" | "POST" | "DELETE"): Step | undefined {
    return this.#nextStep(verb);
  }

  async #play(step: Step, request: Incoming, exchange: Exchange): Promise<void> {
    const { id, method, params } = request;
    if (exchange.admit?.(step) === "over") return;
    await this.#act(step, request);
    if (await exchange.perform(step) === "over") return;
    const asked = await this.#say(step, request, exchange);
    if (step.exit !== undefined) return await exchange.exit(step.exit);
    if (step.silent || id === undefined) return;
    if (method === "subscriptions/listen" && this.scenario.subscriptions) {
      return await this.#subscribe(id, params, exchange);
    }
    const answer = asked ?? this.#scripted(step) ?? this.#usual(method, params);
    for (let sent = 0; sent < (step.answers ?? 1); sent += 1) {
      await exchange.send({ id, ...answer });
    }
    if (step.exitAfter !== undefined) await exchange.exit(step.exitAfter);
  }

  /** What a step does before anything is said. */
  async #act(step: Step, request: Incoming): Promise<void> {
    if (step.delayMs !== undefined) await pause(step.delayMs);
    if (step.blockMs !== undefined) block(step.blockMs);
    if (step.ledger !== undefined) appendLine(step.ledger, ledgerLine(request));
    if (step.tools !== undefined) this.#tools = step.tools;
  }

  /** What it says before the answer; the answer, where the client gives it. */
  async #say(step: Step, request: Incoming, exchange: Exchange): Promise<Fields | undefined> {
    for (const message of step.send ?? []) await exchange.send(message);
    if (step.notify !== undefined) await this.#notify(step.notify, exchange);
    if (step.progress !== undefined) await sendProgress(step.progress, request, exchange);
    if (step.ask === undefined) return undefined;
    const answers: Value[] = [];
    for (const ask of [step.ask].flat()) answers.push(await this.#ask(ask, exchange));
    return this.#text(JSON.stringify(Array.isArray(step.ask) ? answers : answers[0]));
  }

  /** News go to those who subscribed; else, as before 2026-07-28, to whoever is there. */
  async #notify(method: string, exchange: Exchange): Promise<void> {
    if (!this.scenario.subscriptions) return await exchange.send({ method });
    for (const [id, subscriber] of this.#subscribers) {
      await subscriber.send({ method, params: { _meta: { [SUBSCRIPTION_ID]: id } } });
    }
  }

  async #subscribe(id: Value, params: Fields, exchange: Exchange): Promise<void> {
    this.#subscribers.set(id, exchange);
    exchange.hold?.();
    await exchange.send({
      method: "notifications/subscriptions/acknowledged",
      params: {
        _meta: { [SUBSCRIPTION_ID]: id },
        notifications: params["notifications"] ?? {},
      },
    });
  }

  async #ask(ask: Ask, exchange: Exchange): Promise<Fields> {
    const id = `ask-${++this.#asks}`;
    const { promise, resolve } = Promise.withResolvers<Fields>();
    this.#asked.set(id, resolve);
    await exchange.send({ id, ...ask });
    return await promise;
  }

  #stepFor({ method, params }: Incoming): Step | undefined {
    if (method !== "tools/call") return this.#nextStep(method);
    return this.#nextStep(`tools/call:${String(params["name"])}`) ?? this.#nextStep(method);
  }

  #nextStep(key: string): Step | undefined {
    const first = this.scenario.on?.[key];
    if (first === undefined) return undefined;
    const use = this.#uses.get(key) ?? 0;
    this.#uses.set(key, use + 1);
    return stepOfUse(first, use);
  }

  #scripted(step: Step): Fields | undefined {
    if (step.result !== undefined) return { result: step.result };
    if (step.error !== undefined) return { error: { ...step.error } };
    return step.text === undefined ? undefined : this.#text(step.text.repeat(step.textTimes ?? 1));
  }

  #text(text: string): Fields {
    return { result: this.#typed({ content: [{ type: "text", text }] }) };
  }

  /** Results of 2026-07-28 name their type. */
  #typed(result: Fields): Fields {
    return this.scenario.era === "modern" ? { resultType: "complete", ...result } : result;
  }

  #usual(method: string, params: Fields): Fields {
    const { era = "legacy", capabilities = { tools: {} } } = this.scenario;
    const modern = era === "modern";
    switch (method) {
      case "server/discover":
        return modern
          ? {
            result: this.#typed({
              supportedVersions: ["2026-07-28"],
              capabilities,
              ...CACHE_HINTS,
            }),
          }
          : NOT_FOUND;
      case "initialize":
        return modern ? NOT_FOUND : {
          result: {
            protocolVersion: this.scenario.protocolVersion ?? "2025-11-25",
            capabilities,
            serverInfo: { name: "scripted", version: "1.0.0" },
          },
        };
      case "ping":
        return modern ? NOT_FOUND : { result: {} };
      case "tools/list":
        return { result: this.#typed({ ...CACHE_HINTS, ...this.#listing(params) }) };
      case "tools/call":
        return this.#text(`called ${String(params["name"])}`);
      default:
        return NOT_FOUND;
    }
  }

  #listing(params: Fields): Fields {
    const { pages, endlessPages } = this.scenario;
    if (params["cursor"] === undefined) this.#page = 0;
    const page = this.#page++;
    if (endlessPages !== undefined) {
      const fresh = { name: `t${page}`, inputSchema: { type: "object" } };
      return {
        tools: endlessPages === "new-tools" ? [fresh] : this.#tools,
        nextCursor: `c${page}`,
      };
    }
    if (pages === undefined) return { tools: this.#tools };
    return { ...(pages[Math.min(page, pages.length - 1)] ?? { tools: [] }) };
  }
}

/** The scenario that a program was given: as JSON, or as `@FILE` where it is long. */
export function givenScenario(argument = "{}"): Scenario {
  return JSON.parse(argument.startsWith("@") ? readFileSync(argument.slice(1), "utf8") : argument);
}

/** The scenario as this start of it is to be. */
function lifeOf(scenario: Scenario): Scenario {
  const { starts, lives = [] } = scenario;
  if (starts === undefined) return scenario;
  appendLine(starts, "start");
  const started = readFileSync(starts, "utf8").split("\n").length - 1;
  return { ...scenario, ...lives[Math.min(started, lives.length) - 1] };
}

async function sendProgress(
  { everyMs, count }: { everyMs: number; count: number },
  { params }: Incoming,
  exchange: Exchange,
): Promise<void> {
  const meta = params["_meta"];
  const progressToken = isFields(meta) ? meta["progressToken"] : undefined;
  for (let step = 1; step <= count && progressToken !== undefined; step += 1) {
    await pause(everyMs);
    await exchange.send({
      method: "notifications/progress",
      params: { progressToken, progress: step, message: `step ${step}` },
    });
  }
}

function ledgerLine({ method, params }: Incoming): string {
  const meta = params["_meta"];
  const key = isFields(meta) ? meta["rnix/idempotencyKey"] : undefined;
  return `${method} ${String(params["name"] ?? "-")} ${String(key ?? "-")}`;
}

/** Appends a line; it is on the disk when this returns. */
function appendLine(file: string, line: string): void {
  const handle = openSync(file, "a");
  try {
    writeSync(handle, `${line}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
