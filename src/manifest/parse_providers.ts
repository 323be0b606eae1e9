/** `providers.yaml` text to checked entries, or all its mistakes at once, each with line and column. */
import { z } from "zod";
import { nearest } from "../base/nearest.ts";
import { baseUrl, count, keyVariable, plain, template } from "./manifest_schema.ts";
import { isHeaderName, isName, NAME_RULE } from "./names.ts";
import { isMapping } from "./not_built.ts";
import { FILE_START, type KeyPath, type Position, type Problems } from "./problems.ts";
import {
  builtIn,
  keyVariableOf,
  PROVIDER_KINDS,
  type ProviderEntry,
  ProviderTable,
} from "./provider_table.ts";
import { type Add, addIssues, checkShape, describe } from "./schema_issues.ts";
import { readYaml, type YamlSource } from "./yaml_source.ts";

const dollars = z.number().nonnegative();

const priceSchema = z.strictObject({
  input: dollars,
  output: dollars,
  cached: dollars.exactOptional(),
});

const entrySchema = z.strictObject({
  kind: z.enum(PROVIDER_KINDS).optional(),
  base_url: baseUrl.optional(),
  api_key_env: keyVariable.optional(),
  default_model: plain.optional(),
  price: priceSchema.optional(),
  context_window: count.optional(),
  headers: z.record(z.string(), template).optional(),
});

const providersSchema = z.strictObject({
  default: plain.optional(),
  providers: z.record(z.string(), entrySchema).default({}),
});

type EntryFile = z.output<typeof entrySchema>;

/** What a file says. */
export interface ParsedProviders {
  default?: string;
  entries: ProviderEntry[];
}

export interface ParseProvidersOptions {
  /** How the file is named in messages. */
  file: string;
  /** Names that other files have, which `default` may mean. */
  alsoKnown?: readonly ProviderEntry[];
}

/** Parses the file. Mistakes go to `problems`; then nothing is given. Never throws. */
export function parseProviders(
  text: string,
  options: ParseProvidersOptions,
  problems: Problems,
): ParsedProviders | undefined {
  const before = problems.count;
  const add: Add = (position, message) => problems.add(options.file, position, message);
  const source = readYaml(text);
  for (const { position, message } of source.mistakes) add(position, message);
  if (source.value === undefined) return undefined;
  if (source.value === null) return { entries: [] };
  if (!isMapping(source.value)) {
    add(source.valueAt([]), `Expected a mapping of keys, got ${describe(source.value)}`);
    return undefined;
  }
  const parsed = checkShape(providersSchema, source.value);
  if (parsed === undefined) {
    add(FILE_START, "So many mistakes that they can't be listed");
    return undefined;
  }
  if (!parsed.success) addIssues(parsed.error.issues, source, { add, keysAt });
  addBrokenRules(source.value, source, add);
  if (!parsed.success || problems.count > before) return undefined;
  const entries = Object.entries(parsed.data.providers).map(([name, file]) => toEntry(name, file));
  const { default: name } = parsed.data;
  if (name === undefined) return { entries };
  const fault = new ProviderTable([...options.alsoKnown ?? [], ...entries]).faultOf(name);
  if (fault === undefined) return { entries, default: name };
  add(source.valueAt(["default"]), fault);
  return undefined;
}

function keysAt(path: KeyPath) {
  const at = path.length >= 2 ? ["providers", "*", ...path.slice(2)].join(".") : path.join(".");
  const known: { [path: string]: string[] } = {
    "": Object.keys(providersSchema.shape),
    "providers.*": Object.keys(entrySchema.shape),
    "providers.*.price": Object.keys(priceSchema.shape),
  };
  return { known: known[at] ?? [], others: [] };
}

/** Rules between keys, and for names of keys. */
function addBrokenRules(file: Record<string, unknown>, source: YamlSource, add: Add): void {
  const { providers } = file;
  if (!isMapping(providers)) return;
  for (const [name, entry] of Object.entries(providers)) {
    const path = ["providers", name];
    const at = (key?: string): () => Position => () =>
      source.keyAt(key === undefined ? path : [...path, key]);
    if (!isName(name)) add(at(), `Invalid provider name "${name}": use ${NAME_RULE}`);
    if (!isMapping(entry)) continue;
    const kind = entry["kind"] ?? builtIn(name)?.kind;
    const misspelt = Object.keys(entry).some((key) => nearest(key, ["kind"]) !== undefined);
    if (kind === undefined && !misspelt) {
      add(at(), `Provider "${name}" needs "kind": one of ${PROVIDER_KINDS.join(", ")}`);
    }
    for (const key of ["base_url", "api_key_env", "headers"]) {
      if (kind !== "scripted" || !Object.hasOwn(entry, key)) continue;
      add(at(key), `Kind "scripted" has no use for "${key}"; remove it`);
    }
    const { headers } = entry;
    for (const header of isMapping(headers) ? Object.keys(headers) : []) {
      if (isHeaderName(header)) continue;
      add(() => source.keyAt([...path, "headers", header]), `Invalid header name "${header}"`);
    }
  }
}

/** What the file leaves out is as it is without a file. */
function toEntry(name: string, file: EntryFile): ProviderEntry {
  const known = builtIn(name);
  const kind = file.kind ?? known?.kind ?? "openai-compatible";
  const base = known !== undefined && known.kind === kind ? known : undefined;
  const url = file.base_url ?? base?.baseUrl;
  const apiKeyEnv = file.api_key_env ?? keyVariableOf(kind);
  const keyOptional = file.api_key_env === undefined && file.base_url !== undefined &&
    apiKeyEnv !== undefined;
  const { default_model, price, context_window, headers } = file;
  return {
    name,
    kind,
    ...url === undefined ? {} : { baseUrl: url },
    ...apiKeyEnv === undefined ? {} : { apiKeyEnv },
    ...keyOptional ? { keyOptional } : {},
    ...default_model === undefined ? {} : { defaultModel: default_model },
    ...price === undefined ? {} : { price },
    ...context_window === undefined ? {} : { contextWindow: context_window },
    ...headers === undefined ? {} : { headers },
  };
}
