/**
 * The `anthropic` provider: Claude through the Messages API.
 *
 * Thinking blocks go back with their signatures, redacted ones with their data. The prompt up to its end is marked for the provider's cache, so that each turn pays the full price only for what is new.
 */
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { JsonObject } from "../../base/json.ts";
import type { Provider } from "../provider.ts";
import { type Projection, projectSchema } from "../schema_projection.ts";
import type { Dialect } from "../sdk/dialect.ts";
import { SdkModel } from "../sdk/sdk_model.ts";
import { sdkSettings } from "../sdk/settings.ts";

const BASE_URL = "https://api.anthropic.com/v1";
const CACHED = { anthropic: { cacheControl: { type: "ephemeral" } } };
const PROPERTY_NAME = /^[a-zA-Z0-9_.-]{1,64}$/;

const dialect: Dialect = {
  rules: {
    metaKey: "anthropic",
    reasoningNeedsMeta: true,
    keepsEmptyText: false,
    plainCallIds: true,
    marksErrors: true,
    imageTypes: ["image/png", "image/jpeg", "image/gif", "image/webp"],
    project: projectForAnthropic,
  },
  keepsCallIds: true,
  // Arguments come checked by the provider, not as raw pieces.
  callOptions: { providerOptions: { anthropic: { toolStreaming: false } } },
  keyHeader: "x-api-key",
  prepare: markForCache,
  async load() {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return (modelId, { settings, fetch }) =>
      createAnthropic({
        baseURL: settings.baseUrl,
        apiKey: settings.apiKey ?? "",
        headers: settings.headers,
        fetch,
      })(modelId);
  },
};

/** Marks the system text (and the tools before it) and the end of the conversation. */
function markForCache(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
  return prompt.map((message, index) =>
    message.role === "system" || index === prompt.length - 1
      ? { ...message, providerOptions: CACHED }
      : message
  );
}

/** The common form; a property's name must besides have letters that the API takes. */
export function projectForAnthropic(schema: JsonObject): Projection {
  const projection = projectSchema(schema);
  if ("refused" in projection) return projection;
  const name = findName(projection.schema, (name) => !PROPERTY_NAME.test(name));
  return name === undefined
    ? projection
    : { refused: `Input schema has a property ${JSON.stringify(name)}, which the API refuses` };
}

/** The first property name, at any depth, for which `isWanted`. */
function findName(schema: JsonObject, isWanted: (name: string) => boolean): string | undefined {
  for (const [key, value] of Object.entries(schema)) {
    if (typeof value !== "object" || value === null) continue;
    if (key === "enum" || key === "default" || key === "const") continue;
    if (key === "properties" && !Array.isArray(value)) {
      const name = Object.keys(value).find(isWanted);
      if (name !== undefined) return name;
    }
    const inner = Array.isArray(value)
      ? value
      : key === "properties"
      ? Object.values(value)
      : [value];
    for (const part of inner) {
      if (typeof part !== "object" || part === null || Array.isArray(part)) continue;
      const name = findName(part, isWanted);
      if (name !== undefined) return name;
    }
  }
  return undefined;
}

export const anthropic: Provider = {
  name: "anthropic",
  tools: { project: dialect.rules.project },
  make: (settings, clock) =>
    new SdkModel(dialect, sdkSettings("anthropic", settings, BASE_URL), clock),
};
