/**
 * A checkpoint spares a resume the folding of what came before it: `checkpoint.json` holds the programs' state as of an entry, with the SHA-256 of the journal up to there.
 *
 * It is an offer, never the truth: one that doesn't fit the journal, or was made by other reducers, is ignored. Made when the journal has grown by max(1 MiB or what `config.yaml` says, its size at the last one), so that disk and hashing stay linear in the run's length.
 */
import { SysError } from "../base/errors.ts";
import { newSha256 } from "../base/hash.ts";
import type { Json } from "../base/json.ts";
import { isJsonObject } from "../base/json.ts";
import { writeStateFile } from "../base/state_file.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { FORMAT_VERSION } from "./entry.ts";
import { checkpointPath, FILE_MODE } from "./folder.ts";
import type { Checkpoint } from "./journal.ts";
import { isSealed, sealJson } from "./line.ts";

/** Least growth of the journal between two checkpoints. */
export const CHECKPOINT_GROWTH_BYTES_MIN = 1024 * 1024;
const READ_BYTES = 256 * 1024;

/** A checkpoint as read from disk, whose journal prefix was found unchanged. */
export interface SavedCheckpoint extends Checkpoint {
  /** Where the entry after `seq` begins. */
  offset: number;
}

/** The part of a checkpoint writer's making that it shares with its journal. */
export interface CheckpointParts {
  storage: Storage;
  folder: string;
  lastSeq: number;
  sizeBytes: number;
  checkpointBytes: number;
  /** Least growth between two checkpoints, in place of `CHECKPOINT_GROWTH_BYTES_MIN`. */
  checkpointGrowthBytes?: number | undefined;
}

/** Knows where entries end, and writes checkpoints one at a time. */
export class CheckpointWriter {
  readonly #storage: Storage;
  readonly #folder: string;
  /** Ends of the entries `#firstSeq`, `#firstSeq + 1`, … */
  #ends: number[];
  #firstSeq: number;
  readonly #growthBytesMin: number;
  #lastBytes: number;
  #saving: Promise<void> | undefined;

  constructor(parts: CheckpointParts) {
    this.#storage = parts.storage;
    this.#folder = parts.folder;
    this.#ends = [parts.sizeBytes];
    this.#firstSeq = parts.lastSeq;
    this.#lastBytes = parts.checkpointBytes;
    this.#growthBytesMin = parts.checkpointGrowthBytes ?? CHECKPOINT_GROWTH_BYTES_MIN;
  }

  /** Whether a journal of this size wants a checkpoint. */
  isDue(sizeBytes: number): boolean {
    const grown = sizeBytes - this.#lastBytes;
    return this.#saving === undefined &&
      grown >= Math.max(this.#growthBytesMin, this.#lastBytes);
  }

  /** Notes where the next entry ends. */
  entryEnds(offset: number): void {
    this.#ends.push(offset);
  }

  /** Writes the checkpoint; those asked for meanwhile are refused with INVALID. */
  save(checkpoint: Checkpoint, journal: StorageFile): Promise<void> {
    if (this.#saving !== undefined) {
      return Promise.reject(new SysError("INVALID", "A checkpoint is being written already"));
    }
    const saving = this.#write(checkpoint, journal).finally(() => this.#saving = undefined);
    this.#saving = saving;
    return saving;
  }

  /** Resolves when no checkpoint is being written. */
  async idle(): Promise<void> {
    await this.#saving?.catch(() => {});
  }

  async #write(checkpoint: Checkpoint, journal: StorageFile): Promise<void> {
    const { versions, seq, state } = checkpoint;
    const offset = this.#ends[seq - this.#firstSeq];
    if (offset === undefined) {
      throw new SysError("INTERNAL", `Checkpoint at entry ${seq}, whose end isn't known any more`);
    }
    const sha256 = await hashPrefix(journal, offset);
    const open = JSON.stringify({ v: FORMAT_VERSION, versions, seq, offset, sha256, state });
    await writeStateFile(
      this.#storage,
      checkpointPath(this.#folder),
      sealJson(open.slice(0, -1)),
      FILE_MODE,
    );
    this.#lastBytes = offset;
    this.#ends = this.#ends.slice(seq - this.#firstSeq);
    this.#firstSeq = seq;
  }
}

/** SHA-256 of the first `length` bytes, or of all there are. */
async function hashPrefix(file: StorageFile, length: number): Promise<string> {
  const hash = newSha256();
  for (let offset = 0; offset < length;) {
    const bytes = await file.readAt(offset, Math.min(READ_BYTES, length - offset));
    if (bytes.length === 0) break;
    hash.update(bytes);
    offset += bytes.length;
  }
  return hash.digest("hex");
}

/** The run's checkpoint, if there is one and the journal still begins with what it was made from. */
export async function loadCheckpoint(
  storage: Storage,
  folder: string,
  journal: StorageFile,
): Promise<SavedCheckpoint | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await storage.read(checkpointPath(folder));
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return undefined;
    throw thrown;
  }
  const saved = parseCheckpoint(bytes);
  if (saved === undefined || saved.offset > journal.size()) return undefined;
  return await hashPrefix(journal, saved.offset) === saved.sha256 ? saved : undefined;
}

function parseCheckpoint(bytes: Uint8Array): SavedCheckpoint & { sha256: string } | undefined {
  const line = bytes.at(-1) === 10 ? bytes.subarray(0, -1) : bytes;
  if (!isSealed(line)) return undefined;
  const parsed: Json = JSON.parse(new TextDecoder().decode(line));
  if (!isJsonObject(parsed) || parsed.v !== FORMAT_VERSION) return undefined;
  const { versions, seq, offset, sha256, state } = parsed;
  if (typeof seq !== "number" || typeof offset !== "number" || typeof sha256 !== "string") {
    return undefined;
  }
  if (!isJsonObject(versions) || state === undefined) return undefined;
  const numbers: { [reducer: string]: number } = {};
  for (const [reducer, version] of Object.entries(versions)) {
    if (typeof version !== "number") return undefined;
    numbers[reducer] = version;
  }
  return { versions: numbers, seq, offset, sha256, state };
}

/** Whether a checkpoint was made by these very reducers. */
export function isOfVersions(
  checkpoint: Checkpoint,
  versions: { [reducer: string]: number },
): boolean {
  const names = Object.keys(versions);
  return names.length === Object.keys(checkpoint.versions).length &&
    names.every((name) => checkpoint.versions[name] === versions[name]);
}
