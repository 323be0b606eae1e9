/**
 * Telemetry for trees of runs whose client's environment asks for it; for all others there is nothing, and nothing is loaded.
 *
 * A tree has one exporter while any of its runs is at work; what is left then is sent behind everybody's back, within a limit, which `close` awaits.
 */
import { type Clock, within } from "../base/clock.ts";
import { VERSION } from "../base/version.ts";
import type { Telemetry } from "../kernel/ports.ts";
import type { Post, ProcessFacts, SpanExporter } from "../telemetry/mod.ts";
import { type TelemetrySettings, telemetrySettings } from "../telemetry/settings.ts";

/** How long spans on their way may hold up the end of the daemon, milliseconds. */
export const DRAIN_MS_MAX = 1_000;
const TREE_HEIGHT_MAX = 100;

export interface TelemetryDeps {
  clock: Clock;
  /** The run that started this one, as its journal has it. */
  parentOf(runId: string): Promise<string | undefined>;
}

/** What the telemetry of one process is made with. */
export interface TelemetryFacts extends Omit<ProcessFacts, "rootRunId"> {
  redact(text: string): string;
  notice(message: string): void;
}

/** Telemetry of a process, until it is closed. */
export interface OpenTelemetry extends Telemetry {
  /** Idempotent. */
  close(): void;
}

interface Sink {
  exporter: SpanExporter;
  close(): void;
}

export class TelemetrySource {
  readonly #deps: TelemetryDeps;
  readonly #sending = new Set<Promise<void>>();

  constructor(deps: TelemetryDeps) {
    this.#deps = deps;
  }

  /** Undefined where the client didn't ask for it. */
  forTree(env: { readonly [name: string]: string }): TreeTelemetry | undefined {
    const settings = telemetrySettings(env);
    if (settings === undefined) return undefined;
    return new TreeTelemetry({ ...this.#deps, env, settings, onSending: (one) => this.#keep(one) });
  }

  /** Awaits what is on its way, within a limit. */
  async close(): Promise<void> {
    const all = Promise.all(this.#sending).then(() => {});
    await within(this.#deps.clock, DRAIN_MS_MAX, all, () => {});
  }

  #keep(sending: Promise<void>): void {
    this.#sending.add(sending);
    void sending.finally(() => this.#sending.delete(sending));
  }
}

interface TreeOptions extends TelemetryDeps {
  env: { readonly [name: string]: string };
  settings: TelemetrySettings | string;
  /** Told of what is sent after the last run of the tree has ended. */
  onSending(sending: Promise<void>): void;
}

/** Telemetry of the runs below one that a client asked for. */
export class TreeTelemetry {
  readonly #options: TreeOptions;
  #root: Promise<string> | undefined;
  #sink: Promise<Sink> | undefined;
  #atWork = 0;
  #isRefusalTold = false;

  constructor(options: TreeOptions) {
    this.#options = options;
  }

  /** For a process that begins. Never rejects: without telemetry a run goes on as with it. */
  async begin({ redact, notice, ...facts }: TelemetryFacts): Promise<OpenTelemetry | undefined> {
    const { settings, clock } = this.#options;
    if (typeof settings === "string") {
      if (!this.#isRefusalTold) notice(settings);
      this.#isRefusalTold = true;
      return undefined;
    }
    this.#atWork += 1;
    try {
      this.#root ??= this.#rootOf(facts.runId);
      this.#sink ??= this.#open(settings, notice);
      const [rootRunId, { exporter }] = await Promise.all([this.#root, this.#sink]);
      const { RunTelemetry } = await import("../telemetry/mod.ts");
      const record = exporter.add.bind(exporter);
      const run = new RunTelemetry({ ...facts, rootRunId }, { clock, redact, record });
      return this.#counted(run);
    } catch {
      this.#leave();
      notice("No telemetry: the way to the collector can't be made ready");
      return undefined;
    }
  }

  #counted(run: Telemetry): OpenTelemetry {
    let isOpen = true;
    return {
      model: (facts) => run.model(facts),
      call: (facts) => run.call(facts),
      end: (end) => run.end(end),
      close: () => {
        if (isOpen) this.#leave();
        isOpen = false;
      },
    };
  }

  #leave(): void {
    this.#atWork -= 1;
    const sink = this.#sink;
    if (this.#atWork > 0 || sink === undefined) return;
    this.#sink = undefined;
    this.#options.onSending(closeSink(sink));
  }

  /** The run at the top, as far as it is still there. The bound is against a journal that was tampered with. */
  async #rootOf(runId: string): Promise<string> {
    let top = runId;
    for (let height = 0; height < TREE_HEIGHT_MAX; height += 1) {
      const parent = await this.#options.parentOf(top).catch(() => undefined);
      if (parent === undefined) break;
      top = parent;
    }
    return top;
  }

  async #open(settings: TelemetrySettings, onLost: (message: string) => void): Promise<Sink> {
    const { clock, env } = this.#options;
    const [{ SpanExporter }, { HttpClient }] = await Promise.all([
      import("../telemetry/mod.ts"),
      import("../mcp/http_client.ts"),
    ]);
    const client = await HttpClient.open(settings.endpoint, env, () => {});
    const post: Post = async (body, signal) => {
      const headers = new Headers({ "content-type": "application/json" });
      for (const [name, value] of settings.headers) headers.set(name, value);
      const request = { method: "POST" as const, headers, body, repeatable: true, signal };
      const response = await client.request(settings.endpoint, request);
      await response.body?.cancel();
      return response.status;
    };
    const origin = { serviceName: settings.serviceName, version: VERSION };
    const exporter = new SpanExporter({ clock, post, origin, onLost });
    return { exporter, close: () => client.close() };
  }
}

async function closeSink(opening: Promise<Sink>): Promise<void> {
  try {
    const sink = await opening;
    await sink.exporter.close();
    sink.close();
  } catch {
    // It was never there.
  }
}
