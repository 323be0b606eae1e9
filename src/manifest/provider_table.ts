/**
 * The model providers that a manifest may name: those that exist without a file, and those of `providers.yaml`.
 *
 * An entry of the project goes before one of the user, as a whole: two files never make up one entry together.
 */
import type { Price } from "../base/budget.ts";
import { nearest } from "../base/nearest.ts";
import type { ProjectFile } from "./project_folder.ts";

/** What a provider speaks. */
export const PROVIDER_KINDS = [
  "anthropic",
  "openai",
  "openai-compatible",
  "google",
  "scripted",
] as const;

export type ProviderKind = (typeof PROVIDER_KINDS)[number];

export interface ProviderEntry {
  name: string;
  kind: ProviderKind;
  /** May hold `${VAR}`. */
  baseUrl?: string;
  apiKeyEnv?: string;
  /** The key is the kind's usual one and goes to an address that is not: it need not be set. */
  keyOptional?: true;
  defaultModel?: string;
  price?: Price;
  /** Tokens. */
  contextWindow?: number;
  /** Values may hold `${VAR}`. */
  headers?: { [name: string]: string };
  /** Set where the project's file has it. */
  projectFile?: ProjectFile;
}

/** Names that exist without a file. */
export const BUILT_IN: readonly ProviderEntry[] = [
  { name: "anthropic", kind: "anthropic", apiKeyEnv: "ANTHROPIC_API_KEY" },
  { name: "openai", kind: "openai", apiKeyEnv: "OPENAI_API_KEY" },
  { name: "google", kind: "google", apiKeyEnv: "GOOGLE_GENERATIVE_AI_API_KEY" },
  { name: "ollama", kind: "openai-compatible", baseUrl: "http://localhost:11434/v1" },
  { name: "openai-compatible", kind: "openai-compatible" },
  { name: "scripted", kind: "scripted" },
];

/** Variable that a kind's key is usually in. */
export function keyVariableOf(kind: ProviderKind): string | undefined {
  return BUILT_IN.find((entry) => entry.name === kind)?.apiKeyEnv;
}

/** The built-in entry that a name means, if it means one. */
export function builtIn(name: string): ProviderEntry | undefined {
  return BUILT_IN.find((entry) => entry.name === name);
}

export interface ProviderDefault {
  name: string;
  projectFile?: ProjectFile;
}

/** All providers there are. */
export class ProviderTable {
  readonly #entries: ReadonlyMap<string, ProviderEntry>;
  /** Of the manifest that names none. */
  readonly default: ProviderDefault | undefined;

  /** Later entries go before earlier and built-in ones of the same name. */
  constructor(entries: readonly ProviderEntry[] = [], defaultOf?: ProviderDefault) {
    this.#entries = new Map([...BUILT_IN, ...entries].map((entry) => [entry.name, entry]));
    this.default = defaultOf;
  }

  get(name: string): ProviderEntry | undefined {
    return this.#entries.get(name);
  }

  get names(): string[] {
    return [...this.#entries.keys()];
  }

  /** What is wrong with a name; undefined for a known one. */
  faultOf(name: string): string | undefined {
    if (this.#entries.has(name)) return undefined;
    const near = nearest(name, this.names);
    const known = this.names.map((each) => `"${each}"`).join(", ");
    return near === undefined
      ? `Unknown provider "${name}"; there are ${known}`
      : `Unknown provider "${name}"; did you mean "${near}"?`;
  }
}

/** Without any file. */
export const BUILT_IN_TABLE = new ProviderTable();
