/**
 * Which agents of a project the user has agreed to run: `trust.json` in the state folder, path and content hash.
 *
 * A changed manifest, instructions text or script needs a new consent. Only agents found by name in project scope are asked for; a path on the command line is consent. Files of a project that a manifest takes providers, servers or skills from are asked for however the manifest was found, and so are its notes for agents.
 */
import { join } from "node:path";
import { z } from "zod";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { makeDurableFolder, readJsonStateFile, writeStateFile } from "../base/state_file.ts";
import type { Storage } from "../base/storage.ts";
import type { LoadedAgent } from "./agent_manifest.ts";
import type { FoundAgent } from "./find_agent.ts";
import type { ProjectFile } from "./project_folder.ts";
import { effectOf } from "./server_config.ts";

const FILE_NAME = "trust.json";
const FORMAT = 1;

const trustFile = z.strictObject({
  v: z.literal(FORMAT),
  /** Content hash by absolute path of the manifest. */
  trusted: z.record(z.string(), z.string()),
});

/** What is known of an agent: agreed to as it is, agreed to before it changed, or never. */
export type TrustState = "trusted" | "changed" | "unknown";

/** A file and the hash of what it says. */
export type Trustable = Pick<LoadedAgent, "path" | "contentHash">;

/** What a person needs to know to agree. */
export interface TrustQuestion {
  name: string;
  path: string;
  state: Exclude<TrustState, "trusted">;
  /** Command lines that would be started, variables unexpanded. */
  commands: string[];
}

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
  async check(agent: Trustable): Promise<TrustState> {
    const known = (await this.#read()).get(agent.path);
    if (known === undefined || agent.contentHash === undefined) return "unknown";
    return known === agent.contentHash ? "trusted" : "changed";
  }

  /** Remembers the consent; durable when the promise resolves. */
  async trust(agent: Trustable): Promise<void> {
    if (agent.contentHash === undefined) return;
    const trusted = await this.#read();
    trusted.set(agent.path, agent.contentHash);
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
    if (parsed.success) return new Map(Object.entries(parsed.data.trusted));
    throw new SysError("INVALID", "This is not a trust file that this version of rnix can read", {
      device: this.#path,
      hint: "Move it away to be asked anew",
    });
  }
}

/** How consent may be had. */
export interface TrustOptions {
  store: TrustStore;
  /** Consent was given with the command (`--trust`). */
  trust: boolean;
  /** Asks a person; absent when there is nobody to ask. */
  ask?: (question: TrustQuestion) => Promise<boolean>;
}

/** Returns when the agent may run. Throws UNTRUSTED (exit 2) when consent is lacking. */
export async function requireTrust(found: FoundAgent, options: TrustOptions): Promise<void> {
  if (found.scope !== "project") return;
  const { agent } = found;
  const state = await options.store.check(agent);
  if (state === "trusted") return;
  const agreed = options.trust || await options.ask?.(questionFor(agent, state)) === true;
  if (agreed) return await options.store.trust(agent);
  const reason = state === "changed" ? "has changed since you trusted it" : "is not trusted yet";
  throw new SysError(
    "UNTRUSTED",
    `Agent "${agent.manifest.name}" of this project ${reason}: ${agent.path}`,
    { hint: "read it, then run again with --trust", exitCode: EXIT_USAGE },
  );
}

const DECIDES: { readonly [name in ProjectFile["name"]]: string } = {
  "providers.yaml": "The providers of this project decide where a key is sent",
  "SKILL.md": "The skills of this project decide what an agent is told and which tools it has",
  "AGENTS.md": "The notes of this project decide what an agent is told",
  "mcp.yaml": "The servers of this project decide what is started and where values are sent",
};

/** Whether a file of the project may be used: agreed to before, with the command, or now. */
export async function isFileTrusted(file: ProjectFile, options: TrustOptions): Promise<boolean> {
  const { name, path, effects } = file;
  const state = await options.store.check(file);
  if (state === "trusted") return true;
  const question = { name, path, state, commands: effects };
  if (!options.trust && await options.ask?.(question) !== true) return false;
  await options.store.trust(file);
  return true;
}

/** Returns when a file of the project may be used. Throws UNTRUSTED (exit 2) when consent is lacking. */
export async function requireFileTrust(file: ProjectFile, options: TrustOptions): Promise<void> {
  const { name, path } = file;
  const state = await options.store.check(file);
  if (await isFileTrusted(file, options)) return;
  const reason = state === "changed" ? "has changed since you trusted it" : "is not trusted yet";
  throw new SysError(
    "UNTRUSTED",
    `${DECIDES[name]}, and their file ${reason}: ${path}`,
    { hint: "read it, then run again with --trust", exitCode: EXIT_USAGE },
  );
}

function questionFor(agent: LoadedAgent, state: TrustQuestion["state"]): TrustQuestion {
  return {
    name: agent.manifest.name,
    path: agent.path,
    state,
    commands: (agent.manifest.servers ?? []).map(effectOf),
  };
}
