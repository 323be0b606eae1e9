/**
 * What a repair of a journal would keep and what it would give up. Reads only.
 *
 * The journal is cut before the first record that is damaged, can't be understood, or has lost content that nothing can stand for. A torn tail is no reason to cut: resume deals with it, and it is kept as it is.
 * Where a call's result has lost its content (a blob that is missing or holds something else), the outcome is still known: the record stays, and a sentence stands for the content.
 */
import { SysError } from "../base/errors.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { BlobStore } from "./blobs.ts";
import { Assessment } from "./damage.ts";
import type { BlobRef, Entry, EntryBody } from "./entry.ts";
import type { BlobPointers } from "./line.ts";
import { decodeLine, encodeLine, inspectLine } from "./line.ts";
import { mapText } from "./long_strings.ts";
import type { Line } from "./read.ts";
import { linesOf } from "./read.ts";

/** Calls are told one by one up to here; more adds nothing for a reader. */
const CALLS_MAX = 1_000;

/** A call whose outcome isn't known once the journal is cut. */
export interface LostCall {
  call: string;
  attempt: number;
  tool: string;
  effect: string;
}

/** Content of a result that is lost, of which the outcome is known. */
export interface LostContent {
  seq: number;
  call: string;
  /** JSON pointer of the string, or of the reference to the whole text. */
  pointer: string;
  problem: string;
}

/** The first record that can't stay. */
export interface CutPoint {
  seq: number;
  record: number;
  offset: number;
  problem: string;
}

export interface Survey {
  /** Seq of the last entry that stays; 0 when none does. */
  keptSeq: number;
  /** Where the part that stays ends. */
  keptBytes: number;
  /** Undefined where nothing has to be cut. */
  cut: CutPoint | undefined;
  lostRecords: number;
  lostBytes: number;
  /** Lost records that can't be read: calls in them are not known. */
  unreadableRecords: number;
  /** Other than `read`, in the order of the journal. */
  unknownCalls: LostCall[];
  lostContents: LostContent[];
  /** Whether the manifest that the run was last started with is lost: nothing can bring it back. */
  lostSpec: boolean;
  /** What resume does with a torn tail that is left to it: it sets it aside, or only when told to, since the tail may have been durable. */
  tornTail: "set-aside" | "accept-cut" | undefined;
}

/** Looks at all of the journal. Rejects with INVALID (exit code 7) for a newer format. */
export async function surveyRun(
  storage: Storage,
  folder: string,
  file: StorageFile,
): Promise<Survey> {
  const surveyor = new Surveyor(new BlobStore(storage, folder));
  const assessment = new Assessment();
  const sizeBytes = file.size();
  for await (const lines of linesOf(file, 0, sizeBytes)) {
    for (const line of lines) await surveyor.take(line, assessment.take(line));
  }
  assessment.refuseNewer(folder);
  if (!assessment.isTornTail) return surveyor.end(sizeBytes);
  const survey = surveyor.endTorn(sizeBytes);
  if (survey.cut !== undefined) return survey;
  return {
    ...survey,
    tornTail: assessment.damage?.endedInNewline === true ? "accept-cut" : "set-aside",
  };
}

class Surveyor {
  readonly #blobs: BlobStore;
  #record = 0;
  #keptSeq = 0;
  #keptBytes = 0;
  #cut: CutPoint | undefined;
  /** Set once the cut is for damage that may be a torn tail. */
  #cutByDamage = false;
  #lostRecords = 0;
  #unreadable = 0;
  readonly #calls = new Map<string, LostCall>();
  readonly #contents: LostContent[] = [];
  #lostSpec = false;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** `good`: the bytes of the next good entry, undefined where the line holds none. */
  async take(line: Line, good: Uint8Array | undefined): Promise<void> {
    this.#record += 1;
    if (this.#cut !== undefined) return this.#lose(line.bytes);
    if (good === undefined) {
      this.#cutByDamage = true;
      return this.#cutAt(line, problemOf(line.bytes, this.#keptSeq + 1));
    }
    const decoded = decodedOf(good);
    if (decoded === undefined) return this.#cutAt(line, "it can't be understood");
    const lost = await lostIn(this.#blobs, decoded);
    if (lost.length > 0 && !hasAnswer(decoded.entry)) {
      return this.#cutAt(line, `its content is lost: ${lost[0]?.problem}`);
    }
    const { entry } = decoded;
    this.#contents.push(...lost);
    await this.#follow(entry);
    this.#keptSeq = entry.seq;
    const isWhole = good.length === line.bytes.length;
    this.#keptBytes = line.offset + good.length + (isWhole && line.ended ? 1 : 0);
    if (isWhole) return;
    this.#cutByDamage = true;
    this.#cutAt({ ...line, offset: this.#keptBytes, bytes: line.bytes.subarray(good.length) }, "");
  }

  end(sizeBytes: number): Survey {
    return {
      keptSeq: this.#keptSeq,
      keptBytes: this.#keptBytes,
      cut: this.#cut,
      lostRecords: this.#lostRecords,
      lostBytes: this.#cut === undefined ? 0 : sizeBytes - this.#keptBytes,
      unreadableRecords: this.#unreadable,
      unknownCalls: this.#cut === undefined ? [] : [...this.#calls.values()].slice(0, CALLS_MAX),
      lostContents: this.#contents,
      lostSpec: this.#lostSpec,
      tornTail: undefined,
    };
  }

  /** A journal that ends in a torn tail, which is no reason to cut unless it is all there is. */
  endTorn(sizeBytes: number): Survey {
    if (!this.#cutByDamage || this.#keptSeq === 0) return this.end(sizeBytes);
    this.#cut = undefined;
    this.#lostRecords = 0;
    this.#unreadable = 0;
    return this.end(sizeBytes);
  }

  #cutAt(line: Line, problem: string): void {
    const seq = this.#keptSeq + 1;
    this.#cut = { seq, record: this.#record, offset: line.offset, problem };
    this.#lose(line.bytes);
  }

  /** Calls that are open where the journal is cut, and manifests that are gone. */
  async #follow(entry: Entry): Promise<void> {
    if (entry.type === "call.intent") this.#intend(entry);
    else if (entry.type === "call.settled") this.#calls.delete(entry.call);
    else if (entry.type === "call.result" && entry.outcome !== "unknown") {
      this.#calls.delete(entry.call);
    } else if (entry.type === "run.started" || entry.type === "run.resumed") {
      this.#lostSpec = await problemWith(this.#blobs, entry.spec) !== undefined;
    }
  }

  #lose(bytes: Uint8Array): void {
    this.#lostRecords += 1;
    const isRecord = inspectLine(bytes).kind === "record";
    const entry = isRecord ? decodedOf(bytes)?.entry : undefined;
    if (entry === undefined) this.#unreadable += 1;
    else if (entry.type === "call.intent") this.#intend(entry);
  }

  #intend({ call, attempt, tool, effect }: Entry & { type: "call.intent" }): void {
    if (effect !== "read") this.#calls.set(call, { call, attempt, tool, effect });
  }
}

function problemOf(bytes: Uint8Array, seq: number): string {
  const facts = inspectLine(bytes);
  if (facts.kind === "damaged") return facts.problem;
  if (facts.kind === "newer") return `it has format version ${facts.version}`;
  return `it is entry ${facts.seq} where entry ${seq} should be`;
}

interface Decoded {
  entry: Entry;
  blobs: BlobPointers | undefined;
}

function decodedOf(bytes: Uint8Array): Decoded | undefined {
  try {
    return decodeLine(bytes);
  } catch {
    return undefined;
  }
}

/** Whether the entry says what became of a call, so that a sentence can stand for its content. */
function hasAnswer(entry: Entry): boolean {
  return entry.type === "call.result" || entry.type === "call.settled" ||
    entry.type === "access.result";
}

/** Contents that an entry names and that aren't there. */
async function lostIn(blobs: BlobStore, { entry, blobs: kept }: Decoded): Promise<LostContent[]> {
  const named = Object.entries(kept ?? {});
  const whole = wholeOf(entry);
  if (whole !== undefined) named.push(whole);
  const lost: LostContent[] = [];
  for (const [pointer, ref] of named) {
    const problem = await problemWith(blobs, ref);
    if (problem === undefined) continue;
    lost.push({ seq: entry.seq, call: "call" in entry ? entry.call : "", pointer, problem });
  }
  return lost;
}

/** The reference to a result's whole text, with its JSON pointer. */
export function wholeOf(entry: Entry): [pointer: string, ref: BlobRef] | undefined {
  if (
    (entry.type === "call.result" || entry.type === "access.result") && entry.outcome !== "unknown"
  ) {
    return entry.whole === undefined ? undefined : ["/whole", entry.whole];
  }
  const whole = entry.type === "call.settled" ? entry.answer?.whole : undefined;
  return whole === undefined ? undefined : ["/answer/whole", whole];
}

/** What is wrong with a blob; undefined when it is as its name says. Rejects where the disk can't be read. */
export async function problemWith(blobs: BlobStore, ref: BlobRef): Promise<string | undefined> {
  try {
    await blobs.get(ref);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof SysError && thrown.code === "JOURNAL_DAMAGED") return thrown.message;
    throw thrown;
  }
}

/** The line (with its newline) of a record whose content is lost in part: same numbers, a sentence in place of each lost string. */
export function withoutLost(bytes: Uint8Array, lost: readonly LostContent[]): Uint8Array {
  const { entry, blobs = {} } = decodeLine(bytes);
  const problems = new Map(lost.map(({ pointer, problem }) => [pointer, problem]));
  const { v: _v, seq, ts, synced, ...rest } = entry;
  const body = mapText(withoutWhole(rest as EntryBody, problems), (text, pointer) => {
    const problem = problems.get(pointer);
    return problem === undefined ? text : `[rnix] This part of the result was lost: ${problem}`;
  });
  const left = Object.entries(blobs).filter(([pointer]) => !problems.has(pointer));
  return encodeLine({ seq, ts, synced }, body, Object.fromEntries(left)).bytes;
}

function withoutWhole(body: EntryBody, problems: ReadonlyMap<string, string>): EntryBody {
  const isResult = body.type === "call.result" || body.type === "access.result";
  if (isResult && body.outcome !== "unknown" && problems.has("/whole")) {
    const { whole: _whole, ...rest } = body;
    return rest;
  }
  if (body.type !== "call.settled" || !problems.has("/answer/whole")) return body;
  const { answer, ...rest } = body;
  if (answer === undefined) return body;
  const { whole: _whole, ...left } = answer;
  return { ...rest, answer: left };
}
