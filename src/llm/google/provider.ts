/**
 * The `google` provider: Gemini through the Generative Language API.
 *
 * Thought signatures stay with the part that they came on, an empty one included, and go back there.
 */
import type { Provider } from "../provider.ts";
import type { Dialect } from "../sdk/dialect.ts";
import { SdkModel } from "../sdk/sdk_model.ts";
import { sdkSettings } from "../sdk/settings.ts";
import { projectForGemini } from "./gemini_schema.ts";

const BASE_URL = "https://generativelanguage.googleapis.com/v1beta";

/** Function declarations that the API takes in one request: it refuses more. */
export const TOOLS_MAX = 512;

const dialect: Dialect = {
  rules: {
    metaKey: "google",
    reasoningNeedsMeta: true,
    keepsEmptyText: true,
    plainCallIds: true,
    marksErrors: true,
    imageTypes: ["image/png", "image/jpeg", "image/webp"],
    project: projectForGemini,
  },
  toolsMax: TOOLS_MAX,
  keepsCallIds: true,
  keyHeader: "x-goog-api-key",
  async load() {
    const { createGoogle } = await import("@ai-sdk/google");
    return (modelId, { settings, fetch }) =>
      createGoogle({
        baseURL: settings.baseUrl,
        apiKey: settings.apiKey ?? "",
        headers: settings.headers,
        // Where the API gives a call no id, rnix gives it one.
        generateId: () => "",
        fetch,
      })(modelId);
  },
};

export const google: Provider = {
  name: "google",
  tools: { project: dialect.rules.project, max: TOOLS_MAX },
  make: (settings, clock) =>
    new SdkModel(dialect, sdkSettings("google", settings, BASE_URL), clock),
};
