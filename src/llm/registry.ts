/** The model providers there are: one folder and one line each. */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { nearest } from "../base/nearest.ts";
import { anthropic } from "./anthropic/provider.ts";
import { google } from "./google/provider.ts";
import type { Model } from "./model.ts";
import { openAi } from "./openai/provider.ts";
import { openAiCompatible } from "./openai_compatible/provider.ts";
import type { ModelSettings, Provider } from "./provider.ts";
import { scripted } from "./scripted/provider.ts";

export type { ModelSettings, Provider } from "./provider.ts";

export const PROVIDERS: readonly Provider[] = [
  anthropic,
  google,
  openAi,
  openAiCompatible,
  scripted,
];

/** The kinds of providers. */
export const PROVIDER_NAMES: readonly string[] = PROVIDERS.map((provider) => provider.name);

/** Makes a provider's model. Throws NOT_FOUND for an unknown provider, INVALID for settings that it can't work with (all mistakes of a script at once). */
export function createModel(settings: ModelSettings & { provider: string; clock: Clock }): Model {
  const provider = PROVIDERS.find((candidate) => candidate.name === settings.provider);
  if (provider !== undefined) return provider.make(settings, settings.clock);
  const near = nearest(settings.provider, PROVIDER_NAMES);
  throw new SysError("NOT_FOUND", `Unknown model provider "${settings.provider}"`, {
    hint: near === undefined
      ? `Known are: ${PROVIDER_NAMES.join(", ")}`
      : `Did you mean "${near}"?`,
  });
}
