/** Long content of a run, kept once by its SHA-256 under `blobs/`, written and synced before the entry that names it. */
import { SysError } from "../base/errors.ts";
import { sha256Hex } from "../base/json.ts";
import { writeStateFile } from "../base/state_file.ts";
import type { Storage } from "../base/storage.ts";
import type { BlobRef, Entry, EntryBody } from "./entry.ts";
import { blobsPath, FILE_MODE, journalDamaged } from "./folder.ts";
import type { Prepared } from "./journal.ts";
import type { BlobPointers } from "./line.ts";
import { wellFormedBody } from "./line.ts";
import { longStrings, mapText } from "./long_strings.ts";

const REPAIR_HINT = '"rnix journal repair RUN" says what could be kept without it';

/** Keeps content; durable when the promise resolves. */
export type PutBlob = (content: Uint8Array) => Promise<BlobRef>;
/** Content by its name; rejects with JOURNAL_DAMAGED when it is missing or not what its name says. */
export type GetBlob = (ref: BlobRef) => Promise<Uint8Array>;

/** The blobs of one run's folder. */
export class BlobStore {
  readonly #storage: Storage;
  readonly #folder: string;
  /** By hash. What an earlier process left may not be durable, so only what was written here counts. */
  readonly #written = new Map<string, Promise<BlobRef>>();

  constructor(storage: Storage, runFolder: string) {
    this.#storage = storage;
    this.#folder = blobsPath(runFolder);
  }

  put(content: Uint8Array): Promise<BlobRef> {
    const sha256 = sha256Hex(content);
    const known = this.#written.get(sha256);
    if (known !== undefined) return known;
    const ref = { sha256, bytes: content.length };
    const written = writeStateFile(this.#storage, this.#pathOf(ref), content, FILE_MODE)
      .then(() => ref);
    this.#written.set(sha256, written);
    return written;
  }

  async get(ref: BlobRef): Promise<Uint8Array> {
    const path = this.#pathOf(ref);
    let content: Uint8Array;
    try {
      content = await this.#storage.read(path);
    } catch (thrown) {
      if (!(thrown instanceof SysError) || thrown.code !== "NOT_FOUND") throw thrown;
      throw journalDamaged(`Blob "${ref.sha256}" is missing`, {
        syscall: "Read",
        device: path,
        hint: REPAIR_HINT,
      });
    }
    if (sha256Hex(content) !== ref.sha256) {
      throw journalDamaged(`Blob "${ref.sha256}" holds other content than its name says`, {
        syscall: "Read",
        device: path,
        hint: REPAIR_HINT,
      });
    }
    return content;
  }

  #pathOf(ref: BlobRef): string {
    return `${this.#folder}/${ref.sha256}`;
  }
}

/** Keeps the long strings of an entry as blobs; at once, without a promise, when there are none. */
export function prepareBody(body: EntryBody, put: PutBlob): Prepared | Promise<Prepared> {
  if (longStrings(body).length === 0) return { body, blobs: {} };
  return prepareLong(wellFormedBody(body), put);
}

async function prepareLong(body: EntryBody, put: PutBlob): Promise<Prepared> {
  const encoder = new TextEncoder();
  const kept = await Promise.all(
    longStrings(body).map(async ({ pointer, text }): Promise<[string, BlobRef]> => [
      pointer,
      await put(encoder.encode(text)),
    ]),
  );
  return { body, blobs: Object.fromEntries(kept) };
}

/** The entry with its strings back in place. */
export async function hydrate(entry: Entry, blobs: BlobPointers, get: GetBlob): Promise<Entry> {
  const texts = new Map<string, string>();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  for (const [pointer, ref] of Object.entries(blobs)) {
    texts.set(pointer, decoder.decode(await get(ref)));
  }
  return mapText(entry, (text, pointer) => texts.get(pointer) ?? text);
}
