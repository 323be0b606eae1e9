/** A model that plays replies in order and keeps what it was asked. It checks that every call of every earlier reply has exactly one result. */
import assert from "node:assert/strict";
import type { AgentPrompt } from "../../src/agent/agent_program.ts";
import type { Price } from "../../src/base/budget.ts";
import { type Clock, sleep } from "../../src/base/clock.ts";
import type { SysError } from "../../src/base/errors.ts";
import type { Json } from "../../src/base/json.ts";
import type { ModelPort, ModelPortOutcome } from "../../src/kernel/ports.ts";
import type { AssistantMessage } from "../../src/llm/model.ts";
import type { ToolDefinition } from "../../src/vfs/device.ts";

export interface PlannedCall {
  tool: string;
  input?: Json;
  /** The provider's id of the call; by default one of its own. */
  id?: string;
  malformed?: string;
}

export type PlannedReply =
  | string
  | PlannedCall[]
  | { text?: string; calls?: PlannedCall[]; finishReason?: string; tokens?: number; ms?: number }
  | { error: SysError; retryable: boolean; retryAfterMs?: number; contextWindow?: true }
  | { throws: Error }
  /** Says nothing; `deaf`: not even when it is aborted. */
  | { hangs: true; deaf?: boolean };

/** What a port may say of itself. */
export interface ModelFacts {
  provider?: string;
  model?: string;
  price?: Price;
  toolsMax?: number;
}

/** Tools of rnix itself, whose names have no server before them. */
const OWN_TOOLS = /^(ReadResult$|agent__)/;

export interface Asked {
  prompt: AgentPrompt;
  tools: readonly ToolDefinition[];
  atMs: number;
}

/** Milliseconds that a reply takes. */
export const REPLY_MS = 1;
export const REQUEST_MS_MAX = 600_000;

export class ModelDouble {
  readonly asked: Asked[] = [];
  /** Replies to come. */
  readonly replies: PlannedReply[];
  readonly #clock: Clock;
  readonly #facts: ModelFacts;
  #ids = 0;

  constructor(clock: Clock, replies: readonly PlannedReply[], facts: ModelFacts = {}) {
    this.#clock = clock;
    this.replies = [...replies];
    this.#facts = facts;
  }

  /** Names of tools that the provider can't be offered. */
  readonly refused = new Set<string>();

  /** The model as one process has it: a dead one gets no reply, and uses none up. */
  portFor(isDead: () => boolean): ModelPort<AgentPrompt> {
    const request: ModelPort<AgentPrompt>["request"] = async (...args) =>
      isDead() ? await new Promise(() => {}) : await this.#port.request(...args);
    return { ...this.#port, ...this.#facts, request };
  }

  readonly #port: ModelPort<AgentPrompt> = {
    provider: "double",
    model: "fixed",
    requestMsMax: REQUEST_MS_MAX,
    refuses: ({ name }) => this.refused.has(name) ? `No schema for ${name}` : undefined,
    request: async (prompt, tools, { signal, onDelta }) => {
      checkPairs(prompt);
      this.asked.push({
        prompt: { ...prompt, messages: [...prompt.messages] },
        tools,
        atMs: this.#clock.monotonic(),
      });
      const reply = this.replies.shift();
      if (reply === undefined) throw new Error(`No reply is planned for ${this.asked.length}`);
      if (typeof reply === "object" && "hangs" in reply) {
        await hang(reply.deaf ? undefined : signal);
      }
      onDelta({ type: "text", text: "…" });
      await sleep(
        this.#clock,
        typeof reply === "object" && "ms" in reply ? reply.ms ?? 0 : REPLY_MS,
      );
      return this.#outcome(reply);
    },
  };

  #outcome(reply: PlannedReply): ModelPortOutcome {
    if (typeof reply === "string") return this.#message({ text: reply });
    if (Array.isArray(reply)) return this.#message({ calls: reply });
    if ("throws" in reply) throw reply.throws;
    if ("hangs" in reply) throw new Error("Hung up");
    if ("error" in reply) return { ok: false, ...reply };
    return this.#message(reply);
  }

  #message(
    reply: { text?: string; calls?: PlannedCall[]; finishReason?: string; tokens?: number },
  ): ModelPortOutcome {
    const { text, calls = [], finishReason = "stop", tokens = 10 } = reply;
    const message: AssistantMessage = {
      role: "assistant",
      parts: [
        ...(text === undefined ? [] : [{ type: "text" as const, text }]),
        ...calls.map(({ tool, input = {}, id, malformed }) => ({
          type: "tool-call" as const,
          provider_id: id ?? `call_${this.#ids++}`,
          tool: tool.startsWith("mcp__") || OWN_TOOLS.test(tool) ? tool : `mcp__${tool}`,
          input,
          ...(malformed === undefined ? {} : { malformed }),
        })),
      ],
    };
    return {
      ok: true,
      message: message as unknown as Json,
      usage: { input_tokens: tokens, output_tokens: 0 },
      finishReason,
    };
  }
}

async function hang(signal: AbortSignal | undefined): Promise<never> {
  return await new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Calls of a reply are answered right after it, each once, in order; ids never meet. */
function checkPairs({ messages }: AgentPrompt): void {
  const seen = new Set<string>();
  messages.forEach((message, index) => {
    if (message.role !== "assistant" || message.callIds.length === 0) return;
    const next = messages[index + 1];
    const ids = next?.role === "tool" ? next.results.map(({ id }) => id) : [];
    assert.deepEqual(ids, message.callIds);
    for (const id of ids) {
      assert.ok(id !== "" && !seen.has(id), `call id "${id}" is there twice`);
      seen.add(id);
    }
  });
}
