/**
 * The servers of `mcp.yaml` that a manifest or a command may name.
 *
 * An entry of the project goes before one of the user, as a whole. Mistakes of the files are kept and told only to who takes servers from them: a run that names none isn't kept from running.
 */
import { nearest } from "../base/nearest.ts";
import type { ServerConfig } from "./agent_manifest.ts";
import type { PlaceOf } from "./places.ts";
import { type Problem, Problems } from "./problems.ts";
import type { ProjectFile } from "./project_folder.ts";

/** A server that can be named. */
export interface KnownServer {
  name: string;
  config: ServerConfig;
  /** Absolute path of the `mcp.yaml` that has it. */
  file: string;
  scope: "user" | "project";
  /** Where something stands in that file. */
  placeOf?: PlaceOf;
  /** Set where the project's file has it: that needs trust. */
  projectFile?: ProjectFile;
}

/** What a search for the files found. */
export interface ServerFiles {
  /** Files that were looked into, as shown to the user. */
  lookedInto: readonly string[];
  /** Mistakes in them. */
  problems: readonly Problem[];
}

/** All servers that can be named. */
export class ServerTable {
  readonly #entries: ReadonlyMap<string, KnownServer>;
  readonly #files: ServerFiles;

  /** Later entries go before earlier ones of the same name. */
  constructor(
    entries: readonly KnownServer[] = [],
    files: ServerFiles = { lookedInto: [], problems: [] },
  ) {
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.#files = files;
  }

  get(name: string): KnownServer | undefined {
    return this.#entries.get(name);
  }

  get all(): KnownServer[] {
    return [...this.#entries.values()];
  }

  /** Mistakes in the files; a file that has any gives no servers. */
  get problems(): readonly Problem[] {
    return this.#files.problems;
  }

  /** Throws INVALID (exit 2) with all mistakes of the files, if there are any. */
  requireSound(): void {
    const problems = new Problems();
    problems.addAll(this.problems);
    if (problems.count > 0) throw problems.toError();
  }

  /** What is wrong with a name; undefined for a known one. */
  faultOf(name: string): string | undefined {
    if (this.#entries.has(name)) return undefined;
    const names = [...this.#entries.keys()];
    const near = nearest(name, names);
    const listed = names.map((each) => `"${each}"`).join(", ");
    const known = names.length === 0 ? "there are none" : `there are ${listed}`;
    const advice = near === undefined ? known : `did you mean "${near}"?`;
    const { lookedInto } = this.#files;
    const looked = lookedInto.length === 0 ? "" : ` (looked into ${lookedInto.join(" and ")})`;
    return `Unknown server "${name}"${looked}; ${advice}`;
  }
}

/** Without any file. */
export const NO_SERVERS = new ServerTable();
