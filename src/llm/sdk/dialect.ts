/**
 * What one provider has of its own: how its library is loaded, and what its API takes. All else is the same for every provider.
 *
 * A dialect holds no state of a model or a request.
 */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import type { Projection } from "../schema_projection.ts";
import type { JsonObject } from "../../base/json.ts";

/** What a provider's API takes of messages and tools. */
export interface TranslationRules {
  /** Key of this provider's metadata in `meta`. */
  metaKey: string;
  /** Reasoning goes back only with this provider's own metadata: without a signature it is refused or worthless. */
  reasoningNeedsMeta: boolean;
  /** An empty text part that carries this provider's metadata must go back. */
  keepsEmptyText: boolean;
  /** Call ids may hold only letters, digits, `_` and `-`. */
  plainCallIds: boolean;
  /** The API has a field that says that a call failed. */
  marksErrors: boolean;
  /** Media types of images that a tool result may hold. */
  imageTypes: readonly string[];
  /** A tool's schema as the API takes it. */
  project(schema: JsonObject): Projection;
  /** Longest description of a tool, characters; what is longer goes on in the schema's. */
  descriptionCharsMax?: number;
}

/** Settings of a model that is reached through its library. */
export interface SdkSettings {
  /** The provider's name in the configuration, for journal and messages. */
  name: string;
  baseUrl: string;
  apiKey: string | undefined;
  apiKeyEnv: string | undefined;
  headers: { [name: string]: string };
  /** How long a stream may bring nothing. */
  timeoutMs: number;
  /** Tokens, where known. */
  contextWindow: number | undefined;
  /** The way to the provider. */
  fetch: typeof fetch;
  /** Takes secrets out of what a provider says, before it is cut. */
  redact: (text: string) => string;
}

/** What the library's model is made with. */
export interface Wire {
  settings: SdkSettings;
  fetch: typeof fetch;
  /** Sees the body before it is serialised, and may change it. */
  takeBody(body: Record<string, unknown>): Record<string, unknown>;
  /** Sees every chunk of the stream as it came. */
  noteChunk(chunk: unknown): void;
}

export interface Dialect {
  readonly rules: TranslationRules;
  /** Tools that the API takes in one request, where it says so. */
  readonly toolsMax?: number;
  /** Loads the library; called once per model. Nothing may be read from rnix's own environment. */
  load(): Promise<(modelId: string, wire: Wire) => LanguageModelV4>;
  /** Whether old messages are serialised once and spliced in as bytes: only where the wire has one list `messages`. */
  readonly splicesHistory?: boolean;
  /** Whether ids of calls are those of the wire; otherwise `noteChunk` tells which are. */
  readonly keepsCallIds: boolean;
  readonly callOptions?: Pick<LanguageModelV4CallOptions, "providerOptions">;
  /** Header of the key: left out where there is no key. */
  readonly keyHeader?: string;
  /** Last touch to the whole prompt. */
  prepare?(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt;
}
