/** The `openai-compatible` provider: any server that speaks OpenAI's chat completions, Ollama among them. */
import type { Provider } from "../provider.ts";
import { projectSchema } from "../schema_projection.ts";
import type { Dialect } from "../sdk/dialect.ts";
import { SdkModel } from "../sdk/sdk_model.ts";
import { sdkSettings } from "../sdk/settings.ts";

// Also the key of provider metadata in the journal. Not the SDK's own name: it would copy metadata under that one into the wire messages.
const PROVIDER_KEY = "rnix";

/** Functions that chat completions take in one request by their documentation; servers of other makers have taken the limit over. */
export const TOOLS_MAX = 128;

/** Longest description of a function that OpenAI's and Azure's chat completions take (`string_above_max_length`). */
const DESCRIPTION_CHARS_MAX = 1024;

const dialect: Dialect = {
  rules: {
    metaKey: PROVIDER_KEY,
    reasoningNeedsMeta: false,
    keepsEmptyText: false,
    plainCallIds: false,
    marksErrors: false,
    imageTypes: [],
    project: projectSchema,
    descriptionCharsMax: DESCRIPTION_CHARS_MAX,
  },
  splicesHistory: true,
  toolsMax: TOOLS_MAX,
  keepsCallIds: false,
  async load() {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    return (modelId, { settings, fetch, takeBody, noteChunk }) =>
      createOpenAICompatible({
        name: PROVIDER_KEY,
        baseURL: settings.baseUrl,
        ...(settings.apiKey === undefined ? {} : { apiKey: settings.apiKey }),
        headers: settings.headers,
        includeUsage: true,
        transformRequestBody: takeBody,
        metadataExtractor: {
          extractMetadata: () => Promise.resolve(undefined),
          createStreamExtractor: () => ({
            processChunk: noteChunk,
            buildMetadata: () => undefined,
          }),
        },
        fetch,
      }).chatModel(modelId);
  },
};

export const openAiCompatible: Provider = {
  name: "openai-compatible",
  tools: {
    project: dialect.rules.project,
    max: TOOLS_MAX,
    descriptionCharsMax: DESCRIPTION_CHARS_MAX,
  },
  make: (settings, clock) =>
    new SdkModel(dialect, sdkSettings("openai-compatible", settings), clock),
};
