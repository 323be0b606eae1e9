/** A model's configuration with the client's environment filled in: its address, its headers, its key, and which of these are secret. */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { SECRET_CHARS_MIN } from "../base/redaction.ts";
import type { ModelPlace } from "./agent_manifest.ts";
import { holdsLogin } from "./manifest_schema.ts";
import { type Missing, missingError } from "./missing_variables.ts";
import type { PlaceOf } from "./places.ts";
import { literalsOfModel, secretValues, unique } from "./secret_values.ts";
import { expandTemplate } from "./template.ts";

/** What a model provider needs, with the environment filled in. */
export interface ResolvedModel {
  provider: string;
  kind: string;
  model: string;
  baseUrl?: string;
  apiKey?: string;
  headers?: { [name: string]: string };
  /** The key and variables in the URL and headers. */
  secrets: string[];
  /** Header values that are written out: to be redacted in sinks only. */
  sinkOnly: string[];
}

/** Fills in a model's URL, headers and key. `placeOf`: where something stands in its manifest, for messages. Throws INVALID or UNAUTHENTICATED (exit 2) when a variable is missing. */
export function resolveModel(
  config: ModelPlace & { preferred: string },
  clientEnv: { [name: string]: string },
  placeOf?: PlaceOf,
): ResolvedModel {
  const { provider, kind = provider, preferred } = config;
  const model: ResolvedModel = { provider, kind, model: preferred, secrets: [], sinkOnly: [] };
  const lacks: Missing[] = [];
  const fill = (text: string, key: string): string => {
    const expansion = expandTemplate(text, clientEnv);
    for (const variable of expansion.missing) {
      lacks.push({ variable, key, place: placeOf?.(key.split("."), `\${${variable}}`) });
    }
    model.secrets.push(...secretValues(expansion.used));
    return expansion.text;
  };
  if (config.baseUrl !== undefined) {
    model.baseUrl = fill(config.baseUrl, "models.base_url");
    // A URL's host is told in lower case.
    model.secrets.push(...model.secrets.map((secret) => secret.toLowerCase()));
  }
  if (config.headers !== undefined) {
    const headers = Object.entries(config.headers).map(([name, value]): [string, string] => {
      return [name, fill(value, `providers.${provider}.headers.${name}`)];
    });
    model.headers = Object.fromEntries(headers);
  }
  model.sinkOnly.push(...unique(literalsOfModel(config)));
  if (lacks.length > 0) throw missingError(lacks, []).with({ exitCode: EXIT_USAGE });
  if (model.baseUrl !== undefined) requireHttp(model.baseUrl, config.baseUrl ?? "");
  const key = config.apiKeyEnv === undefined ? "" : clientEnv[config.apiKeyEnv] ?? "";
  if (key !== "") {
    model.apiKey = key;
    if (key.length >= SECRET_CHARS_MIN) model.secrets.push(key);
  } else if (config.apiKeyEnv !== undefined && config.keyOptional !== true) {
    throw new SysError(
      "UNAUTHENTICATED",
      `No key for the model: "${config.apiKeyEnv}" is not set`,
      {
        hint: `export ${config.apiKeyEnv}=… (models.api_key_env names another variable)`,
        exitCode: EXIT_USAGE,
      },
    );
  }
  return { ...model, secrets: unique(model.secrets) };
}

/** Throws INVALID (exit 2) for an address that no request can go to. It says how the address is written, never what it is: its variables may hold secrets. */
function requireHttp(baseUrl: string, template: string): void {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const facts = { exitCode: EXIT_USAGE };
  if (url !== undefined && holdsLogin(url)) {
    throw new SysError("INVALID", "models.base_url holds a user name or a password", {
      ...facts,
      hint:
        "Take it out of the address: a key goes into api_key_env, or into headers of providers.yaml",
    });
  }
  if (url !== undefined && ["http:", "https:"].includes(url.protocol)) return;
  throw new SysError("INVALID", `models.base_url "${template}" isn't an http or https URL`, {
    ...facts,
    hint: "Such as base_url: https://api.openai.com/v1",
  });
}
