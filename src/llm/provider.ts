/** What a model provider is to the registry, and the settings it is made from. */
import type { Clock } from "../base/clock.ts";
import type { JsonObject } from "../base/json.ts";
import type { Model } from "./model.ts";
import type { Projection } from "./schema_projection.ts";

/** Everything a provider may need; each takes what concerns it. Values are expanded: no `${VAR}` is left. */
export interface ModelSettings {
  /** Name of its entry in the configuration; the kind's own where it has none. */
  name?: string | undefined;
  baseUrl?: string | undefined;
  /** The key itself. */
  apiKey?: string | undefined;
  /** Variable that the key came from or should have come from, for messages. */
  apiKeyEnv?: string | undefined;
  headers?: { [name: string]: string } | undefined;
  /** Tokens that the model takes, for messages. */
  contextWindow?: number | undefined;
  /** How long a request may bring nothing (`models.timeout`); a provider has its own default. */
  timeoutMs?: number | undefined;
  /** Takes secrets out of what the provider says, before it is cut to fit a message. */
  redact?: ((text: string) => string) | undefined;
  /** The way to the provider; else the process's own. */
  fetch?: typeof fetch | undefined;
  /** Script of the `scripted` provider: its text, and its name for messages. */
  script?: { name: string; text: string } | undefined;
}

/** What a provider's API takes of tools, whatever the model. */
export interface ToolTerms {
  /** A tool's schema as the API takes it. */
  project(schema: JsonObject): Projection;
  /** Tools in one request. */
  readonly max?: number;
  /** Longest description of a tool, characters; what is longer goes on in the schema's. */
  readonly descriptionCharsMax?: number;
}

export interface Provider {
  readonly name: string;
  /** Absent where tools are described to nobody. */
  readonly tools?: ToolTerms;
  /** Throws INVALID for settings that it can't work with. */
  make(settings: ModelSettings, clock: Clock): Model;
}
