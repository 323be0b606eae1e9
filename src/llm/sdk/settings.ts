/** Settings of a provider that is reached over HTTP, checked. */
import { SysError } from "../../base/errors.ts";
import type { ModelSettings } from "../provider.ts";
import type { SdkSettings } from "./dialect.ts";
import { STALL_MS_MAX } from "./sdk_model.ts";

/** Fills in what isn't given. Throws INVALID without a base URL, or with one that can't be reached over HTTP. */
export function sdkSettings(
  kind: string,
  given: ModelSettings,
  baseUrlDefault?: string,
): SdkSettings {
  const { name = kind, apiKey, apiKeyEnv, headers = {}, timeoutMs = STALL_MS_MAX } = given;
  const { redact = (text) => text } = given;
  const baseUrl = given.baseUrl ?? baseUrlDefault;
  if (baseUrl === undefined) {
    throw new SysError("INVALID", `Provider "${name}" needs a base_url`, {
      hint: 'Add it under "models", such as base_url: https://api.openai.com/v1',
    });
  }
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    // Its value may hold a secret.
    throw new SysError("INVALID", `base_url of provider "${name}" isn't an http or https URL`);
  }
  return {
    name,
    baseUrl,
    apiKey,
    apiKeyEnv,
    headers,
    timeoutMs,
    contextWindow: given.contextWindow,
    fetch: given.fetch ?? ((input, init) => fetch(input, init)),
    redact,
  };
}
