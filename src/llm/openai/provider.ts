/**
 * The `openai` provider: OpenAI's Responses API.
 *
 * Nothing is stored at OpenAI: reasoning comes encrypted and goes back as it came, so that a resume needs nothing of the server.
 */
import type { Provider } from "../provider.ts";
import { projectSchema } from "../schema_projection.ts";
import type { Dialect } from "../sdk/dialect.ts";
import { SdkModel } from "../sdk/sdk_model.ts";
import { sdkSettings } from "../sdk/settings.ts";

const BASE_URL = "https://api.openai.com/v1";

/** Functions that the API takes in one request: it refuses a longer list (`array_above_max_length`). */
export const TOOLS_MAX = 128;

const dialect: Dialect = {
  rules: {
    metaKey: "openai",
    reasoningNeedsMeta: true,
    keepsEmptyText: false,
    plainCallIds: true,
    marksErrors: false,
    imageTypes: ["image/png", "image/jpeg", "image/gif", "image/webp"],
    project: projectSchema,
  },
  toolsMax: TOOLS_MAX,
  keepsCallIds: true,
  callOptions: { providerOptions: { openai: { store: false } } },
  keyHeader: "authorization",
  async load() {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return (modelId, { settings, fetch }) =>
      createOpenAI({
        baseURL: settings.baseUrl,
        apiKey: settings.apiKey ?? "",
        headers: settings.headers,
        fetch,
      }).responses(modelId);
  },
};

export const openAi: Provider = {
  name: "openai",
  tools: { project: dialect.rules.project, max: TOOLS_MAX },
  make: (settings, clock) =>
    new SdkModel(dialect, sdkSettings("openai", settings, BASE_URL), clock),
};
