/**
 * Cutting a torn tail: first kept in a side file `journal.cut-<seq>-<ts>`, synced, then cut off. Only the holder of the lease does this.
 *
 * A cut whose lines may have been durable stays *open* until an entry says that something after it is durable: a crash between the cut and the first records that take account of it must not make it forgotten.
 */
import { SysError } from "../base/errors.ts";
import { writeStateFile } from "../base/state_file.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import type { Damage } from "./damage.ts";
import { Assessment, damageMessage } from "./damage.ts";
import type { Entry, EntryOf } from "./entry.ts";
import { cutPath, cutSeqOf, FILE_MODE, journalDamaged, journalPath, runIdOf } from "./folder.ts";
import { decodeLine, inspectLine } from "./line.ts";
import { linesOf } from "./read.ts";

const NEWLINE = 10;

/** Records that were cut though they may have been durable, and so may their effects be. */
export interface Cut {
  /** Seq of the first entry that was cut; entries with this seq and later ones may be others now. */
  seq: number;
  /** The same of the latest cut among them; a `journal.cut` entry with a higher seq has taken account of all. */
  lastSeq: number;
  /** Intents that can still be read in what was cut: their calls may have left. */
  intents: EntryOf<"call.intent">[];
  /** The same of what persons did on devices. */
  accesses: EntryOf<"access.intent">[];
  /** At least as many as were lost, told by the numbers of those that can be read. */
  records: number;
  sideFiles: string[];
}

/** Throws JOURNAL_DAMAGED (exit code 7) when the tail may have been durable and nobody accepted its cut. */
export function refuseUnaccepted(folder: string, damage: Damage, acceptCut: boolean): void {
  if (!damage.endedInNewline || acceptCut) return;
  const run = runIdOf(folder);
  throw journalDamaged(
    `Journal of run "${run}" ${
      damageMessage(damage)
    }; records from there on may have been durable and their effects may have left`,
    {
      syscall: "Read",
      device: journalPath(folder),
      hint: `"rnix resume ${run} --accept-cut" goes on from record ${
        damage.seq - 1
      }; calls that may have left then count as unknown`,
    },
  );
}

/** Mends the end of a journal: sets a torn tail aside and cuts it, restores a missing newline. Gives the notices; durable when the promise resolves. */
export async function mendTail(
  storage: Storage,
  folder: string,
  file: StorageFile,
  assessment: Assessment,
  ts: number,
): Promise<string[]> {
  const run = runIdOf(folder);
  const notices: string[] = [];
  const end = assessment.endBytes;
  const tailBytes = file.size() - end;
  const damage = assessment.damage;
  if (damage !== undefined) {
    const sidePath = cutPath(folder, damage.seq, ts);
    await writeStateFile(storage, sidePath, await file.readAt(end, tailBytes), FILE_MODE);
    await file.truncate(end);
    notices.push(cutNotice(run, damage, tailBytes, sidePath));
  }
  if (assessment.lacksNewline) {
    file.append(Uint8Array.of(NEWLINE));
    notices.push(
      `Journal of run "${run}": record ${assessment.lastSeq} lacked its newline, which was restored`,
    );
  }
  if (notices.length > 0) await file.sync();
  return notices;
}

function cutNotice(run: string, damage: Damage, tailBytes: number, sidePath: string): string {
  const lost = damage.endedInNewline
    ? "; a whole reply of the model may be lost, and calls that may have left count as unknown"
    : "";
  return `Journal of run "${run}" ${
    damageMessage(damage)
  }; its last ${tailBytes} bytes were set aside in "${sidePath}"${lost}`;
}

/** The cut that isn't taken account of yet: side files from after what is known durable, of which a line had ended. */
export async function openCut(
  storage: Storage,
  folder: string,
  durableSeq: number,
): Promise<Cut | undefined> {
  const sideFiles: string[] = [];
  const intents = new Map<string, EntryOf<"call.intent">>();
  const accesses = new Map<string, EntryOf<"access.intent">>();
  const seqs: number[] = [];
  let records = 0;
  for (const name of await storage.list(folder)) {
    const seq = cutSeqOf(name);
    if (seq === undefined || seq <= durableSeq) continue;
    const path = `${folder}/${name}`;
    const bytes = await readSideFile(storage, path);
    if (!bytes.includes(NEWLINE)) continue;
    sideFiles.push(path);
    seqs.push(seq);
    const lost = lostIn(bytes, seq);
    records += lost.records;
    for (const intent of lost.intents) intents.set(`${intent.call}#${intent.attempt}`, intent);
    for (const access of lost.accesses) accesses.set(access.call, access);
  }
  if (sideFiles.length === 0) return undefined;
  const [seq, lastSeq] = [Math.min(...seqs), Math.max(...seqs)];
  const found = { intents: [...intents.values()], accesses: [...accesses.values()] };
  return { seq, lastSeq, ...found, records, sideFiles };
}

/**
 * The cut that a resume would find or make, seen without a lease: side files not taken account of yet, and a torn tail that may have been durable. For plans; a journal that resume refuses has none.
 */
export async function cutAhead(storage: Storage, folder: string): Promise<Cut | undefined> {
  const file = await storage.openToRead(journalPath(folder));
  try {
    const assessment = new Assessment();
    for await (const lines of linesOf(file, 0, file.size())) {
      for (const line of lines) assessment.take(line);
    }
    const open = await openCut(storage, folder, assessment.syncedMax);
    const { damage, isTornTail } = assessment;
    if (damage === undefined || !isTornTail || !damage.endedInNewline) return open;
    const tail = await file.readAt(assessment.endBytes, file.size() - assessment.endBytes);
    const lost = lostIn(tail, damage.seq);
    return {
      seq: Math.min(damage.seq, open?.seq ?? damage.seq),
      lastSeq: Math.max(damage.seq, open?.lastSeq ?? 0),
      intents: [...open?.intents ?? [], ...lost.intents],
      accesses: [...open?.accesses ?? [], ...lost.accesses],
      records: (open?.records ?? 0) + lost.records,
      sideFiles: open?.sideFiles ?? [],
    };
  } finally {
    file.close();
  }
}

async function readSideFile(storage: Storage, path: string): Promise<Uint8Array> {
  try {
    return await storage.read(path);
  } catch (thrown) {
    // Cleared away since it was listed: as if it had never been there.
    if (thrown instanceof SysError && thrown.code === "NOT_FOUND") return new Uint8Array();
    throw thrown;
  }
}

/** What can be told of a tail that was cut at entry `seq`: valid intents in it, and how many records there were. A newline may be lost with what stood around it, so a record that can be read counts by its number. */
function lostIn(
  bytes: Uint8Array,
  seq: number,
): Pick<Cut, "intents" | "accesses" | "records"> {
  const intents: Cut["intents"] = [];
  const accesses: Cut["accesses"] = [];
  let records = 0;
  for (let start = 0; start <= bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline;
    const line = bytes.subarray(start, end);
    start = end + 1;
    records += 1;
    const facts = inspectLine(line);
    if (facts.kind !== "record" || facts.seq < seq) continue;
    records = Math.max(records, facts.seq - seq + 1);
    const entry = readable(line);
    if (entry?.type === "call.intent") intents.push(entry);
    else if (entry?.type === "access.intent") accesses.push(entry);
  }
  return { intents, accesses, records };
}

function readable(line: Uint8Array): Entry | undefined {
  try {
    return decodeLine(line).entry;
  } catch {
    // Written by something else, with a right checksum.
    return undefined;
  }
}
