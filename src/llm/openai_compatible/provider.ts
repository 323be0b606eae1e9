/** The `openai-compatible` provider's line in the registry. */
import { SysError } from "../../base/errors.ts";
import type { Provider } from "../provider.ts";
import { OpenAiCompatibleModel, STALL_MS_MAX } from "./openai_compatible_model.ts";

export const openAiCompatible: Provider = {
  name: "openai-compatible",
  make({ baseUrl, apiKey, apiKeyEnv, headers, timeoutMs = STALL_MS_MAX }, clock) {
    if (baseUrl === undefined) {
      throw new SysError("INVALID", 'Provider "openai-compatible" needs a base_url', {
        hint: 'Add it under "models", such as base_url: https://api.openai.com/v1',
      });
    }
    const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
    if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
      throw new SysError("INVALID", `base_url "${baseUrl}" isn't an http or https URL`);
    }
    return new OpenAiCompatibleModel(
      { baseUrl, apiKey, apiKeyEnv, headers: headers ?? {}, timeoutMs },
      clock,
    );
  },
};
