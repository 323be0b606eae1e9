/**
 * Which files of a project the user has agreed to: `trust.json` in the state folder, path and content hash of each.
 *
 * A run by name needs consent to its manifest, instructions and script; a path on the command line is consent. Files of a project that a manifest takes providers, servers or skills from need it however the manifest was found, and so do its notes for agents. Whatever a run needs is asked for at once: all files by their names, each new or changed, and what each decides.
 */
import { join } from "node:path";
import { z } from "zod";
import type { TrustQuestion, UntrustedFile } from "../base/client_facts.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { makeDurableFolder, readJsonStateFile, writeStateFile } from "../base/state_file.ts";
import type { Storage } from "../base/storage.ts";
import type { LoadedAgent } from "./agent_manifest.ts";
import type { AgentScope } from "./known_agents.ts";
import type { ProjectFile } from "./project_folder.ts";
import { effectOf } from "./server_config.ts";

const FILE_NAME = "trust.json";
/** Format 1 had one hash for a manifest with all that lies beside it. */
const FORMAT = 2;

const trustFile = z.strictObject({
  v: z.literal([1, FORMAT]),
  /** Content hash by absolute path. */
  trusted: z.record(z.string(), z.string()),
});

/** Files whose hash is made as it was in format 1. */
const KEPT = /\/(?:providers\.yaml|mcp\.yaml|AGENTS\.md)$/;

/** In place of a hash that says something else now: the file is asked for anew, and still known to need it. */
const FORGOTTEN = "";

/** What is known of a file: agreed to as it is, agreed to before it changed, or never. */
export type TrustState = "trusted" | UntrustedFile["state"];

/** A file and the hash of what it says. */
export interface Trustable {
  /** Absolute. */
  path: string;
  contentHash: string;
}

/** A file that consent is asked for, and what a person needs to know to give it. */
export interface CoveredFile extends Trustable, Pick<UntrustedFile, "decides" | "effects"> {}

/** The consents of one user. */
export class TrustStore {
  readonly #storage: Storage;
  readonly #folder: string;

  /** `state`: the state folder (`RnixPaths.state`); made when first written. */
  constructor(storage: Storage, state: string) {
    this.#storage = storage;
    this.#folder = state;
  }

  /** Throws INVALID when `trust.json` is damaged. */
  async check(file: Trustable): Promise<TrustState> {
    return stateIn(await this.#read(), file);
  }

  /** Those that nobody has agreed to as they are, each once. Throws as `check`. */
  async untrusted<F extends Trustable>(
    files: readonly F[],
  ): Promise<(F & { state: UntrustedFile["state"] })[]> {
    const trusted = await this.#read();
    const each = [...new Map(files.map((file) => [file.path, file])).values()];
    return each.flatMap((file) => {
      const state = stateIn(trusted, file);
      return state === "trusted" ? [] : [{ ...file, state }];
    });
  }

  /** Whether a file at this path was ever agreed to. Throws as `check`. */
  async isKnown(path: string): Promise<boolean> {
    return (await this.#read()).has(path);
  }

  /** Remembers the consent to all of them; durable when the promise resolves. */
  async trust(files: readonly Trustable[]): Promise<void> {
    if (files.length === 0) return;
    const trusted = await this.#read();
    for (const { path, contentHash } of files) trusted.set(path, contentHash);
    if (await this.#storage.stat(this.#folder) === undefined) {
      await makeDurableFolder(this.#storage, this.#folder, 0o700);
    }
    const content = { v: FORMAT, trusted: Object.fromEntries(trusted) };
    await writeStateFile(
      this.#storage,
      this.#path,
      JSON.stringify(content, undefined, 2) + "\n",
      0o600,
    );
  }

  get #path(): string {
    return join(this.#folder, FILE_NAME);
  }

  async #read(): Promise<Map<string, string>> {
    const content = await readJsonStateFile(this.#storage, this.#path);
    if (content === undefined) return new Map();
    const parsed = trustFile.safeParse(content);
    if (parsed.success) {
      const { v, trusted } = parsed.data;
      return new Map(
        Object.entries(trusted).map(([path, hash]) => [
          path,
          v === FORMAT || KEPT.test(path) ? hash : FORGOTTEN,
        ]),
      );
    }
    throw new SysError("INVALID", "This is not a trust file that this version of rnix can read", {
      device: this.#path,
      hint: "Move it away to be asked anew",
    });
  }
}

function stateIn(trusted: ReadonlyMap<string, string>, file: Trustable): TrustState {
  const known = trusted.get(file.path);
  if (known === undefined || known === FORGOTTEN) return "new";
  return known === file.contentHash ? "trusted" : "changed";
}

/** How consent may be had. */
export interface TrustOptions {
  store: TrustStore;
  /** Consent was given with the command (`--trust`). */
  trust: boolean;
  /** Asks a person; absent when there is nobody to ask. */
  ask?: (question: TrustQuestion) => Promise<boolean>;
  /** Told what the command has consented to, a sentence. */
  notice?: (message: string) => void;
}

/** Asks for consent to all that lacks it, at once; gives what still lacks it. `subject`: what takes them, such as `Agent "a"`. */
export async function agreeTo(
  subject: string,
  covered: readonly CoveredFile[],
  { store, trust, ask, notice }: TrustOptions,
): Promise<UntrustedFile[]> {
  const lacking = await store.untrusted(covered);
  if (lacking.length === 0) return [];
  const files = lacking.map(({ contentHash: _, ...file }): UntrustedFile => file);
  if (!trust && await ask?.({ subject, files }) !== true) return files;
  await store.trust(lacking);
  if (trust) notice?.(`Trusted from now on: ${files.map(shownFile).join(", ")}`);
  return [];
}

/** As `agreeTo`, for what can't do without. Throws UNTRUSTED (exit 2) with all files where consent is lacking. */
export async function requireTrust(
  subject: string,
  covered: readonly CoveredFile[],
  options: TrustOptions,
): Promise<void> {
  const left = await agreeTo(subject, covered, options);
  if (left.length > 0) throw untrustedError(subject, left);
}

/** UNTRUSTED (exit 2): what would have to be trusted. */
export function untrustedError(subject: string, files: readonly UntrustedFile[]): SysError {
  const lines = files.map((file) => `  ${shownFile(file)}: ${file.decides}`);
  return new SysError("UNTRUSTED", [needsText(subject, files.length), ...lines].join("\n"), {
    hint: `read ${files.length === 1 ? "it" : "them"}, then run again with --trust`,
    exitCode: EXIT_USAGE,
  });
}

function needsText(subject: string, count: number): string {
  return count === 1
    ? `${subject} needs a file of this project that is not trusted as it is`
    : `${subject} needs ${count} files of this project that are not trusted as they are`;
}

/** `/p/.rnix/mcp.yaml (new)` */
export function shownFile({ path, state }: Pick<UntrustedFile, "path" | "state">): string {
  return `${path} (${state})`;
}

/** What an agent takes that needs consent: what it is made of, where it was found by name in the project, and files of the project. */
export function coveredBy(agent: LoadedAgent, scope: AgentScope): CoveredFile[] {
  const own = scope === "project" ? filesOfAgent(agent) : [];
  return [...own, ...(agent.projectFiles ?? []).map(coveredFile)];
}

/** What an agent is made of: its manifest, its instructions, its script. */
function filesOfAgent({ manifest, ownFiles = [] }: LoadedAgent): CoveredFile[] {
  return ownFiles.map(({ part, ...file }) => ({
    ...file,
    decides: OWN_DECIDES[part],
    effects: part !== "manifest"
      ? []
      : (manifest.servers ?? []).filter(({ file }) => file === undefined).map((server) =>
        `starts ${effectOf(server)}`
      ),
  }));
}

const OWN_DECIDES = {
  manifest: "what runs, and with what",
  instructions: "what the agent is told",
  script: "what the scripted model does",
};

const DECIDES: { readonly [name in ProjectFile["name"]]: string } = {
  "providers.yaml": "where a key is sent",
  "SKILL.md": "what an agent is told, and which tools it has",
  "AGENTS.md": "what an agent is told",
  "mcp.yaml": "what is started, and where values are sent",
};

/** A file of the project that agents take something from. */
export function coveredFile({ name, path, contentHash, effects }: ProjectFile): CoveredFile {
  return { path, contentHash, decides: DECIDES[name], effects };
}
