/**
 * Judges a journal line by line: what is good, where the first damage is, and whether it is a torn tail.
 *
 * Damage at entry k is a torn tail if no later valid entry has `synced` ≥ k: nothing then says that k was ever durable. Any other damage is refused. A last line with a right checksum that lacks only its newline is good. A torn tail of which a line ended in a newline may have been durable, and its effects may have left.
 */
import { SysError } from "../base/errors.ts";
import { FORMAT_VERSION } from "./entry.ts";
import { EXIT_JOURNAL, journalDamaged, journalPath, runIdOf } from "./folder.ts";
import { inspectLine, leadingRecord } from "./line.ts";
import type { LineFacts } from "./line.ts";

/** The first damage of a journal and what follows it. */
export interface Damage {
  /** Seq of the entry that should be there. */
  seq: number;
  /** Number of the line, from 1. */
  record: number;
  /** Bytes from the start of the file. */
  offset: number;
  problem: string;
  /** Whether the damaged part holds a line that ended in a newline. */
  endedInNewline: boolean;
  /** Highest `synced` of a valid line after the damage, 0 when there is none. */
  syncedAfter: number;
}

interface JudgedLine {
  bytes: Uint8Array;
  offset: number;
  ended: boolean;
}

/** Takes the lines of a journal in order; start it after a prefix that is known to be good. */
export class Assessment {
  #lastSeq: number;
  #records: number;
  #endBytes: number;
  #syncedMax = 0;
  #lacksNewline = false;
  /** Good entries of which none says that they are durable, and where they begin. */
  readonly #doubtful: { seq: number; from: number }[] = [];
  #damage: Damage | undefined;
  #newer: { version: number; record: number } | undefined;

  constructor(prefix: { seq: number; offset: number } = { seq: 0, offset: 0 }) {
    this.#lastSeq = prefix.seq;
    this.#records = prefix.seq;
    this.#endBytes = prefix.offset;
  }

  /** Seq of the last good entry. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Where the good part ends. */
  get endBytes(): number {
    return this.#endBytes;
  }

  /** Highest `synced` of the good entries that were taken. */
  get syncedMax(): number {
    return this.#syncedMax;
  }

  /** From where on nothing says that the good entries are durable. */
  get doubtfulFrom(): number {
    return this.#doubtful[0]?.from ?? this.#endBytes;
  }

  /** Whether the last good entry has to be given its newline. */
  get lacksNewline(): boolean {
    return this.#lacksNewline;
  }

  get damage(): Damage | undefined {
    return this.#damage;
  }

  get isTornTail(): boolean {
    return this.#damage !== undefined && this.#damage.syncedAfter < this.#damage.seq;
  }

  /** Bytes of the entry in this line; undefined when it isn't the next good one. */
  take(line: JudgedLine): Uint8Array | undefined {
    this.#records += 1;
    const facts = inspectLine(line.bytes);
    if (facts.kind === "newer") this.#newer ??= { version: facts.version, record: this.#records };
    if (this.#damage !== undefined) {
      this.#takeAfterDamage(this.#damage, line, facts);
      return undefined;
    }
    if (facts.kind === "record" && facts.seq === this.#lastSeq + 1) {
      this.#takeGood(facts.synced, line.offset + line.bytes.length, line.ended);
      return line.bytes;
    }
    const length = line.ended ? undefined : leadingRecord(line.bytes);
    const leading = length === undefined ? undefined : line.bytes.subarray(0, length);
    const leadingFacts = leading === undefined ? undefined : inspectLine(leading);
    if (
      leading !== undefined && leadingFacts?.kind === "record" &&
      leadingFacts.seq === this.#lastSeq + 1
    ) {
      this.#takeGood(leadingFacts.synced, line.offset + leading.length, false);
      this.#begin(line, "its newline was changed into something else");
      return leading;
    }
    this.#takeAfterDamage(this.#begin(line, this.#problemOf(facts)), line, facts);
    return undefined;
  }

  /** Throws when the journal can't be used at all: a newer format, or damage that isn't a torn tail. */
  refuse(folder: string): void {
    this.refuseNewer(folder);
    const damage = this.#damage;
    if (damage === undefined || this.isTornTail) return;
    const run = runIdOf(folder);
    throw journalDamaged(
      `Journal of run "${run}" ${damageMessage(damage)}; it was durable, as later records say`,
      {
        syscall: "Read",
        device: journalPath(folder),
        hint:
          `Nothing was changed; "rnix journal verify ${run}" lists all damage, "rnix journal repair ${run}" says what could be kept`,
      },
    );
  }

  /** Throws INVALID (exit code 7), naming the version, when a record is of a newer format. */
  refuseNewer(folder: string): void {
    if (this.#newer !== undefined) throw newerError(folder, this.#newer);
  }

  #takeGood(synced: number, end: number, ended: boolean): void {
    this.#lastSeq += 1;
    this.#syncedMax = Math.max(this.#syncedMax, synced);
    this.#doubtful.push({ seq: this.#lastSeq, from: this.#endBytes });
    const sure = this.#doubtful.findIndex(({ seq }) => seq > this.#syncedMax);
    this.#doubtful.splice(0, sure < 0 ? this.#doubtful.length : sure);
    this.#endBytes = ended ? end + 1 : end;
    this.#lacksNewline = !ended;
  }

  #takeAfterDamage(damage: Damage, line: JudgedLine, facts: LineFacts): void {
    damage.endedInNewline ||= line.ended;
    if (facts.kind === "record") damage.syncedAfter = Math.max(damage.syncedAfter, facts.synced);
  }

  #begin(line: JudgedLine, problem: string): Damage {
    this.#damage = {
      seq: this.#lastSeq + 1,
      record: this.#records,
      offset: Math.max(line.offset, this.#endBytes),
      problem,
      endedInNewline: false,
      syncedAfter: 0,
    };
    return this.#damage;
  }

  #problemOf(facts: LineFacts): string {
    if (facts.kind === "damaged") return facts.problem;
    if (facts.kind === "newer") return `it has format version ${facts.version}`;
    return `it is entry ${facts.seq} where entry ${this.#lastSeq + 1} should be`;
  }
}

/** "is damaged at record 12 (offset 3456): its checksum doesn't match" */
export function damageMessage(damage: Damage): string {
  return `is damaged at record ${damage.record} (offset ${damage.offset}): ${damage.problem}`;
}

/** INVALID (exit code 7): a journal of a format that this version doesn't read. */
export function newerError(
  folder: string,
  { version, record }: { version: number; record: number },
): SysError {
  return new SysError(
    "INVALID",
    `Journal of run "${
      runIdOf(folder)
    }" has format version ${version} at record ${record}; this rnix reads up to version ${FORMAT_VERSION}`,
    {
      syscall: "Read",
      device: journalPath(folder),
      exitCode: EXIT_JOURNAL,
      hint: "Use the rnix that wrote it, or a later one",
    },
  );
}
