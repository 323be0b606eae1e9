/**
 * Brings the servers of another program's configuration into an `mcp.yaml`.
 *
 * What is written is trusted as what `init` writes: the person asked for it. A project's file that held something else before, which nobody has agreed to, doesn't become trusted by the way.
 */
import { sha256Hex } from "../../base/json.ts";
import type { Storage } from "../../base/storage.ts";
import { readSourceText } from "../source_text.ts";
import type { TrustStore } from "../trust.ts";
import { writeServers } from "../write_servers.ts";
import { withEntries } from "../yaml_edit.ts";
import { convertServers, type ImportNote } from "./convert.ts";
import type { ForeignFormat } from "./foreign_text.ts";

/** Where servers go. */
export interface ImportTarget {
  /** Absolute path of the `mcp.yaml`. */
  path: string;
  /** How it is named in messages. */
  shown: string;
  /** Where consent is kept, for a project's file; the user's own needs none. */
  trust?: TrustStore;
}

export interface ImportRequest {
  /** The other program's configuration. */
  text: string;
  /** How it is named in messages. */
  file: string;
  /** Told by the text itself where it isn't given. */
  format?: ForeignFormat;
  target: ImportTarget;
  /** Entries of the same name are replaced. */
  overwrite: boolean;
  /** Nothing is written. */
  dryRun: boolean;
}

/** What became of one server. */
export interface ImportedServer {
  /** In `mcp.yaml`; of a skipped one its name in the other program. */
  name: string;
  outcome: "added" | "replaced" | "kept" | "skipped";
  /** Why it was skipped, a clause each. */
  reasons?: string[];
}

export interface ImportReport {
  servers: ImportedServer[];
  /** What to know of those that were carried over. */
  notes: ImportNote[];
  /** The entries that are added, as an `mcp.yaml` of their own. */
  yaml: string;
  /** Whether the file needs consent before it is used. */
  untrusted: boolean;
}

/** Durable when the promise resolves. Throws INVALID (exit 2) for a text or a file that has mistakes, with their places; nothing is written then. */
export async function importServers(
  storage: Storage,
  { text, file, format, target, overwrite, dryRun }: ImportRequest,
): Promise<ImportReport> {
  const { servers, skipped, notes } = await convertServers(text, {
    file,
    ...format === undefined ? {} : { format },
  });
  const { path, shown } = target;
  const wasTrusted = await isTrusted(storage, target);
  const written = await writeServers(storage, { path, shown, servers, overwrite, dryRun });
  const isChanged = !dryRun && written.added.length + written.replaced.length > 0;
  if (isChanged && wasTrusted) await trustAsItIs(storage, target);
  const outcomeOf = (name: string) =>
    written.added.includes(name) ? "added" : written.replaced.includes(name) ? "replaced" : "kept";
  const outcomes = servers.map(({ name }) => ({ name, outcome: outcomeOf(name) } as const));
  const chosen = servers.filter(({ name }) => outcomeOf(name) !== "kept");
  return {
    servers: [
      ...outcomes,
      ...skipped.map((name) => ({
        name,
        outcome: "skipped" as const,
        reasons: notes.filter((note) => note.server === name).map(({ message }) => message),
      })),
    ],
    notes: notes.filter(({ server }) => !skipped.includes(server)),
    yaml: chosen.length === 0 ? "" : withEntries("", "servers", chosen),
    untrusted: isChanged && !wasTrusted,
  };
}

/** Whether everything in the file has been agreed to: also where there is none yet. */
async function isTrusted(storage: Storage, { path, trust }: ImportTarget): Promise<boolean> {
  if (trust === undefined) return true;
  const source = await readSourceText(storage, path);
  if (source.kind !== "text" || source.text.trim() === "") return true;
  return await trust.check({ path, contentHash: sha256Hex(source.text) }) === "trusted";
}

async function trustAsItIs(storage: Storage, { path, trust }: ImportTarget): Promise<void> {
  const source = await readSourceText(storage, path);
  if (source.kind !== "text") return;
  await trust?.trust([{ path, contentHash: sha256Hex(source.text) }]);
}
