/**
 * The world outside of a run, for crash tests: servers whose effects are counted, a model that plays fixed turns and checks what it is given, and numbered points at which everything can be stopped.
 *
 * The world outlives the crashed process: its effects stay. Calls are known by their idempotency key, as a real server would know them.
 */
import type { AgentPrompt } from "../../src/agent/agent_program.ts";
import { type Clock, sleep } from "../../src/base/clock.ts";
import type { EffectClass, ToolRules } from "../../src/base/effect.ts";
import { SysError } from "../../src/base/errors.ts";
import { isJsonObject, type Json } from "../../src/base/json.ts";
import type { Mount, MountDriver, MountFacts, MountSpec } from "../../src/kernel/mount.ts";
import type { ModelPort, ModelPortOutcome } from "../../src/kernel/ports.ts";
import type { AssistantMessage } from "../../src/llm/model.ts";
import { READ_RESULT } from "../../src/policy/result_piece.ts";
import type {
  CallOptions,
  DeviceFile,
  DeviceOutcome,
  ToolDefinition,
} from "../../src/vfs/device.ts";
import {
  type Behaviour,
  calledName,
  definition,
  ownMount,
  PASSING_TOOL,
  SERVER,
  toolFacts,
  TOOLS,
} from "./world_tools.ts";

/** A call as it left. */
export interface Sent {
  key: string;
  effect: EffectClass;
  /** Milliseconds of the virtual clock. */
  atMs: number;
}

/** Just under what goes into a blob. */
const BIG_CHARS = 64_000;
const CALL_MS = 3;
const TIMEOUT_MS = 30;
/** How much later than its loss an answer comes after all. */
const LATE_MS = 4;
/** Requests that one process makes of a provider that is down. */
const REQUESTS_MADE = 4;

/** One thing that was done. */
export interface Effect {
  /** Idempotency key. */
  key: string;
  tool: string;
  effect: EffectClass;
  answer: string;
}

/** One call the model makes in a turn. */
export interface ScriptedCall {
  tool: string;
  input: Json;
}

/** A turn: calls, the final text, or a text that the provider holds back, with which the run fails. */
export type Turn = ScriptedCall[] | string | { withheld: string };

/** What its model plays and takes, and what its servers give. */
export interface WorldFacts {
  turns: readonly Turn[];
  resultTokensMax?: number;
  refuses?: { charsMax: number; summaryCharsMax: number };
  /** What the models of agents play that the run may start. */
  agents?: { readonly [name: string]: AgentFacts };
  /** Turn (from 0) at which the provider is down for as long as one process tries. */
  modelDownAt?: number;
  /** The mount (from 1) that fails. */
  mountFailsAt?: number;
}

export interface AgentFacts {
  turns: readonly Turn[];
  /** Turns of the first try of a call, where they are others. */
  first?: readonly Turn[];
  /** It is a workflow: its file but for kind and name. */
  workflow?: string;
  /** Goes on by itself once it is started. */
  detach?: boolean;
}

const SUMMARY = "Some of it is done.";

export class World {
  readonly effects: Effect[] = [];
  /** What was done under another key: that of a run which this call's run was forked from. */
  readonly known = new Map<string, Effect>();
  readonly sent: Sent[] = [];
  /** How long a mount takes. */
  mountMs = 0;
  /** Whether a call's intent is durable at this moment; a call that leaves without is a broken promise. */
  hasDurableIntent: (key: string) => boolean = () => true;
  /** Points passed so far. */
  points = 0;
  /** What broke a promise that the world can see. */
  readonly violations: string[] = [];
  readonly #clock: Clock;
  readonly #facts: WorldFacts;
  readonly #dropped = new Set<string>();
  readonly #mounts = new Set<Mount>();
  /** Resolves when connections are lost. */
  #loss = Promise.withResolvers<void>();
  #isRelisted = false;
  #mountsTried = 0;
  #requestsFailed = 0;
  #stopAt: number | undefined;
  #stop: () => void = () => {};

  constructor(clock: Clock, facts: WorldFacts) {
    this.#clock = clock;
    this.#facts = facts;
    this.spec = {
      server: SERVER,
      required: true,
      rules: this.rules,
      outputTokensMax: facts.resultTokensMax,
      config: null,
    };
  }

  /** Stops everything, by `stop`, when point `at` (counted from now) is reached. */
  stopAtPoint(at: number | undefined, stop: () => void): void {
    this.points = 0;
    this.#stopAt = at;
    this.#stop = stop;
  }

  async point(): Promise<void> {
    this.points += 1;
    if (this.points !== this.#stopAt) return;
    this.#stop();
    await new Promise(() => {});
  }

  /** What was done for a call, under its own key or that of the run that it was forked from. */
  doneUnder(key: string): Effect | undefined {
    return this.effects.find((effect) => effect.key === key) ?? this.known.get(key);
  }

  /** How often the effect with this key was done. */
  count(key: string): number {
    return this.effects.filter((effect) => effect.key === key).length;
  }

  readonly rules: ToolRules = {
    effects: Object.fromEntries(
      Object.entries(TOOLS).map(([name, { effect }]) => [name, effect]),
    ),
    risk: {},
    sensitive: [],
  };

  readonly spec: MountSpec;

  readonly driver: MountDriver = {
    mount: async (): Promise<Mount> => {
      await this.point();
      this.#mountsTried += 1;
      if (this.mountMs > 0) await sleep(this.#clock, this.mountMs);
      if (this.#mountsTried === this.#facts.mountFailsAt) {
        throw new SysError("DRIVER", "The server exited");
      }
      const mount: Mount = {
        facts: this.#mountFacts(),
        health: { state: "connected", sinceMs: 0, attempts: 0, lastError: undefined },
        onChange: undefined,
        close: () => {
          this.#mounts.delete(mount);
          return Promise.resolve();
        },
        open: (path) => this.#file(path.slice("tools/".length)),
        stat: (path) => ({ kind: path === "tools" ? "folder" : "tool", path }),
        list: () => Promise.resolve(Object.keys(TOOLS)),
      };
      this.#mounts.add(mount);
      return mount;
    },
  };

  /** Tools of rnix itself, whose effects are the world's too. */
  readonly own = ownMount({
    open: (path) => this.#file(path.slice("tools/".length)),
    stat: (path) => ({ kind: path === "tools" ? "folder" : "tool", path }),
    list: () => Promise.resolve([]),
  });

  #mountFacts(): MountFacts {
    const names = Object.keys(TOOLS).filter((name) => !this.#isRelisted || name !== PASSING_TOOL);
    return {
      era: "modern",
      protocolVersion: "2026-07-28",
      tools: names.sort().map(definition),
      setAside: {},
    };
  }

  #relist(): void {
    if (this.#isRelisted) return;
    this.#isRelisted = true;
    for (const { onChange } of this.#mounts) onChange?.(this.#mountFacts());
  }

  /** Every connection is lost now: calls under way are unknown. */
  lose(): void {
    this.#loss.resolve();
    this.#loss = Promise.withResolvers<void>();
  }

  /** What the root's model plays. */
  get model(): ModelPort<AgentPrompt> {
    return this.modelOf(this.#facts.turns);
  }

  modelOf(turns: readonly Turn[]): ModelPort<AgentPrompt> {
    return {
      provider: "scripted",
      model: "fixed",
      requestMsMax: 600_000,
      refuses: () => undefined,
      request: (prompt, tools, { signal }) => this.#request(turns, prompt, tools, signal),
    };
  }

  async #request(
    turns: readonly Turn[],
    prompt: AgentPrompt,
    tools: readonly ToolDefinition[],
    signal: AbortSignal,
  ): Promise<ModelPortOutcome> {
    await this.point();
    this.#checkPairs(prompt);
    this.#checkOffer(prompt, tools);
    await sleep(this.#clock, 1, signal);
    const turn = repliesIn(prompt);
    const message = prompt.purpose === "summary" ? reply(SUMMARY, 0) : reply(turns[turn], turn);
    await this.point();
    if (turn === this.#facts.modelDownAt && this.#requestsFailed < REQUESTS_MADE) {
      this.#requestsFailed += 1;
      const error = new SysError("DEVICE_DISCONNECTED", "The provider is down");
      return { ok: false, error, retryable: true };
    }
    if (this.#refuses(prompt)) {
      const error = new SysError("INVALID", "The conversation is too long");
      return { ok: false, error, retryable: false, contextWindow: true };
    }
    return {
      ok: true,
      message: message as unknown as Json,
      usage: { input_tokens: 10, output_tokens: 5 },
      finishReason: isWithheld(turns[turn]) ? "content-filter" : "stop",
    };
  }

  #refuses({ purpose, messages }: AgentPrompt): boolean {
    const { charsMax, summaryCharsMax } = this.#facts.refuses ??
      { charsMax: Infinity, summaryCharsMax: Infinity };
    return JSON.stringify(messages).length > (purpose === "summary" ? summaryCharsMax : charsMax);
  }

  #file(tool: string): DeviceFile {
    return {
      write: (input, options) => this.#call(tool, input, options),
      read: () => Promise.resolve(new Uint8Array()),
      close: () => {},
    };
  }

  async #call(tool: string, input: Json, options: CallOptions): Promise<DeviceOutcome> {
    const { effect, does } = toolFacts(tool);
    const key = options.idempotencyKey;
    const lost = this.#loss.promise.then(() => "lost" as const);
    this.#noteSent(key, effect);
    await this.point();
    const text = answerText(tool, input, does);
    if (effect !== "read" && does !== "fail") {
      this.effects.push({ key, tool, effect, answer: text });
    }
    if (does === "relist" || does === "relist-drop") this.#relist();
    await this.point();
    const answer = { isError: does === "fail", content: [{ type: "text", text }] };
    const inTime = await Promise.race([lost, this.#pause(CALL_MS + delayOf(input), options)]);
    await this.point();
    if (inTime === "lost") return unknown("disconnected");
    if (!inTime) return unknown("cancelled");
    if (does === "answer-late") {
      const late = sleep(this.#clock, LATE_MS).then(() => ({ kind: "answer" as const, ...answer }));
      return unknown("disconnected", late);
    }
    const isFirst = !this.#dropped.has(key);
    if (does === "drop" || ((does === "drop-once" || does === "relist-drop") && isFirst)) {
      this.#dropped.add(key);
      return unknown("disconnected");
    }
    if (does === "time-out") {
      await sleep(this.#clock, TIMEOUT_MS);
      return unknown("timeout");
    }
    return { kind: "answer", ...answer };
  }

  #noteSent(key: string, effect: EffectClass): void {
    this.sent.push({ key, effect, atMs: this.#clock.monotonic() });
    if (effect !== "read" && !this.hasDurableIntent(key)) {
      this.violations.push(`left before its intent was durable: ${key}`);
    }
  }

  /** Waits; after a cancel only as long as the grace. Gives whether the time was enough. */
  async #pause(ms: number, { signal, cancelGraceMs }: CallOptions): Promise<boolean> {
    const endMs = this.#clock.monotonic() + ms;
    try {
      await sleep(this.#clock, ms, signal);
      return true;
    } catch {
      const leftMs = endMs - this.#clock.monotonic();
      await sleep(this.#clock, Math.min(leftMs, cancelGraceMs));
      return leftMs <= cancelGraceMs;
    }
  }

  /** What reads cut results is offered once there is one, whichever process asks. */
  #checkOffer({ messages, purpose }: AgentPrompt, tools: readonly ToolDefinition[]): void {
    if (purpose === "summary") {
      if (tools.length > 0) this.violations.push("tools were offered for a summary");
      return;
    }
    const isCut = messages.some((message) =>
      message.role === "tool" && JSON.stringify(message.results).includes("[… cut")
    );
    const isOffered = tools.some(({ modelName }) => modelName === READ_RESULT);
    if (isCut !== isOffered) this.violations.push(`${READ_RESULT} offered: ${isOffered}`);
  }

  /** Every earlier call has exactly one result, in order, right after its message. */
  #checkPairs({ messages }: AgentPrompt): void {
    messages.forEach((message, index) => {
      if (message.role !== "assistant" || message.callIds.length === 0) return;
      const next = messages[index + 1];
      const ids = next?.role === "tool" ? next.results.map((result) => result.id) : [];
      if (JSON.stringify(ids) !== JSON.stringify(message.callIds)) {
        this.violations.push(`calls ${message.callIds} were answered by ${ids}`);
      }
    });
  }
}

function repliesIn({ messages }: AgentPrompt): number {
  return messages.reduce((sum, message) => {
    if (message.role === "assistant") return sum + 1;
    return message.role === "user" ? sum + (message.repliesBefore ?? 0) : sum;
  }, 0);
}

function isWithheld(turn: Turn | undefined): boolean {
  return typeof turn === "object" && !Array.isArray(turn);
}

function reply(turn: Turn | undefined, index: number): AssistantMessage {
  if (turn === undefined) throw new Error(`There is no turn ${index}`);
  if (!Array.isArray(turn)) {
    const text = typeof turn === "string" ? turn : turn.withheld;
    return { role: "assistant", parts: [{ type: "text", text }] };
  }
  return {
    role: "assistant",
    parts: turn.map(({ tool, input }, position) => ({
      type: "tool-call",
      provider_id: `call_${index}_${position}`,
      tool: calledName(tool),
      input,
    })),
  };
}

/** The same for the same call, so that a call done once or told as done gives the same history. */
export function answerText(tool: string, input: Json, does: Behaviour): string {
  const text = `${tool} ${JSON.stringify(input)}: done`;
  return does === "big" ? `${text} ${"x".repeat(BIG_CHARS)}` : text;
}

function delayOf(input: Json): number {
  const delay = isJsonObject(input) ? input["ms"] : undefined;
  return typeof delay === "number" ? delay : 0;
}

function unknown(
  cause: "disconnected" | "timeout" | "cancelled",
  late: Promise<DeviceOutcome | undefined> = Promise.resolve(undefined),
): DeviceOutcome {
  const code = cause === "timeout" ? "TIMEOUT" : "DEVICE_DISCONNECTED";
  const error = new SysError(code, `The call was lost: ${cause}`);
  return { kind: "unknown", cause, error, late };
}
