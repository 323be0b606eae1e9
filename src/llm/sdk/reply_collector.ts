/** Parts of a stream → one reply. Deltas are told as they come; a part's text is joined once, at the end. */
import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from "@ai-sdk/provider";
import { isJsonObject, type Json, type JsonObject, wellFormed } from "../../base/json.ts";
import type { AssistantPart, ModelDelta, ModelReply } from "../model.ts";
import { readArguments } from "../tool_arguments.ts";
import { REPLY_CHARS_MAX, replyTooLong } from "./reply_limits.ts";

const CHARS_PER_TOKEN = 4;

interface OpenText {
  type: "text" | "reasoning";
  pieces: string[];
  meta?: JsonObject;
}

type Finish = Extract<LanguageModelV4StreamPart, { type: "finish" }>;

export class ReplyCollector {
  readonly #onDelta: (delta: ModelDelta) => void;
  readonly #parts: (OpenText | AssistantPart)[] = [];
  readonly #open = new Map<string, OpenText>();
  /** Ids that the provider itself gave, where the SDK makes up others. */
  readonly #wireIds = new Set<string>();
  readonly #keepsCallIds: boolean;
  #chars = 0;
  #finish: Finish | undefined;

  /** `keepsCallIds`: every id of a call is the provider's own. */
  constructor(onDelta: (delta: ModelDelta) => void, keepsCallIds: boolean) {
    this.#onDelta = onDelta;
    this.#keepsCallIds = keepsCallIds;
  }

  /** Notes the call ids in a chunk as it came over the wire. */
  noteChunk(chunk: unknown): void {
    for (const id of callIds(chunk)) this.#wireIds.add(id);
  }

  /** Takes one part of the stream; those that say nothing about the reply are ignored. Throws RESOURCE_EXHAUSTED for a reply that doesn't end. */
  add(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#start(
          part.type === "text-start" ? "text" : "reasoning",
          part.id,
          part.providerMetadata,
        );
        return;
      case "text-delta":
      case "reasoning-delta": {
        const open = this.#open.get(part.id);
        if (open === undefined) return;
        noteMeta(open, part.providerMetadata);
        if (part.delta === "") return;
        this.#count(part.delta);
        open.pieces.push(part.delta);
        this.#onDelta({ type: open.type, text: part.delta });
        return;
      }
      case "text-end":
      case "reasoning-end": {
        const open = this.#open.get(part.id);
        if (open !== undefined) noteMeta(open, part.providerMetadata);
        this.#open.delete(part.id);
        return;
      }
      case "tool-input-delta":
        this.#count(part.delta);
        return;
      case "tool-call": {
        const meta = metaOf(part.providerMetadata);
        this.#parts.push({
          type: "tool-call",
          provider_id: this.#keepsCallIds || this.#wireIds.has(part.toolCallId)
            ? part.toolCallId
            : "",
          tool: part.toolName.toWellFormed(),
          ...readArguments(part.input),
          ...(meta === undefined ? {} : { meta }),
        });
        return;
      }
      case "finish":
        this.#finish = part;
        return;
    }
  }

  #count(piece: string): void {
    this.#chars += piece.length;
    if (this.#chars > REPLY_CHARS_MAX) throw replyTooLong(`${REPLY_CHARS_MAX} characters`);
  }

  #start(
    type: "text" | "reasoning",
    id: string,
    metadata: SharedV4ProviderMetadata | undefined,
  ): void {
    const open: OpenText = { type, pieces: [] };
    noteMeta(open, metadata);
    this.#open.set(id, open);
    this.#parts.push(open);
  }

  /** How the provider says that it ended; undefined while the end mark is missing, or where the SDK made one up for a stream that broke off. */
  get finish(): Finish["finishReason"] | undefined {
    const reason = this.#finish?.finishReason;
    return reason?.unified === "interrupted" ? undefined : reason;
  }

  /** The whole reply; undefined while the end mark is missing. `requestBytes` stands in for usage that the provider didn't give. */
  reply(requestBytes: number): ModelReply | undefined {
    if (this.#finish === undefined || this.finish === undefined) return undefined;
    // An empty part can still carry what must go back: redacted thinking, a signature.
    const parts = this.#parts.map((part) => "pieces" in part ? closed(part) : sound(part))
      .filter((part) => part.type === "tool-call" || part.text !== "" || part.meta !== undefined);
    const { usage, finishReason } = this.#finish;
    const hasCalls = parts.some((part) => part.type === "tool-call");
    // Several servers end a reply that has calls with `stop`.
    const reason = hasCalls && finishReason.unified !== "length"
      ? "tool-calls"
      : finishReason.unified;
    const cached = usage.inputTokens.cacheRead;
    return {
      message: { role: "assistant", parts },
      usage: {
        input_tokens: usage.inputTokens.total ?? Math.ceil(requestBytes / CHARS_PER_TOKEN),
        output_tokens: usage.outputTokens.total ??
          Math.ceil(JSON.stringify(parts).length / CHARS_PER_TOKEN),
        ...(cached === undefined || cached === 0 ? {} : { cached_tokens: cached }),
      },
      finishReason: reason,
    };
  }
}

function closed({ type, pieces, meta }: OpenText): AssistantPart {
  const text = pieces.join("").toWellFormed();
  return meta === undefined ? { type, text } : { type, text, meta };
}

/** Arguments come from JSON with escapes, which can hold half characters. */
function sound(part: AssistantPart): AssistantPart {
  return part.type === "tool-call" ? { ...part, input: wellFormed(part.input) } : part;
}

/** Adds metadata to what is known of a part: a signature comes with the last of its pieces. */
function noteMeta(open: OpenText, metadata: SharedV4ProviderMetadata | undefined): void {
  const meta = metaOf(metadata);
  if (meta === undefined) return;
  const known = open.meta ?? {};
  for (const [provider, facts] of Object.entries(meta)) {
    const before = known[provider];
    known[provider] = isJsonObject(before) && isJsonObject(facts) ? { ...before, ...facts } : facts;
  }
  open.meta = known;
}

function metaOf(metadata: SharedV4ProviderMetadata | undefined): JsonObject | undefined {
  if (metadata === undefined || Object.keys(metadata).length === 0) return undefined;
  const meta: Json = JSON.parse(JSON.stringify(metadata));
  return isJsonObject(meta) ? meta : undefined;
}

/** `choices[0].delta.tool_calls[].id` of a chunk that may have any shape. */
function callIds(chunk: unknown): string[] {
  const choice = elements(member(chunk, "choices"))[0];
  const calls = elements(member(member(choice, "delta"), "tool_calls"));
  return calls.map((call) => member(call, "id")).filter((id) => typeof id === "string");
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}

function elements(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
