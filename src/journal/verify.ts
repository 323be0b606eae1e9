/** All that is wrong with a run's journal, as a list. Reads only; a run that is live is not disturbed. */
import { toSysError } from "../base/errors.ts";
import type { JournalFindings } from "../base/operations.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { emptiedMessage, signOfLife } from "./begun.ts";
import { BlobStore } from "./blobs.ts";
import { loadCheckpoint } from "./checkpoint.ts";
import { checkpointPath, journalPath, runIdOf } from "./folder.ts";
import { probeLease } from "./lease.ts";
import { decodeLine, inspectLine } from "./line.ts";
import { Assessment } from "./damage.ts";
import type { Line } from "./read.ts";
import { linesOf } from "./read.ts";
import { wholeOf } from "./repair_survey.ts";

/** Damage is told per line up to here; more adds nothing. */
const PROBLEMS_MAX = 100;

type Problem = JournalFindings["problems"][number];

/** Kinds of problems: `damaged`, `sequence`, `newer`, `entry` (can't be understood), `torn` (a tail that resume sets aside), `newline` (missing at the end, resume restores it), `empty` (though the run had begun), `blob`, `checkpoint`. Rejects with NOT_FOUND when there is no journal. */
export async function verifyRun(storage: Storage, folder: string): Promise<JournalFindings> {
  const file = await storage.openToRead(journalPath(folder));
  try {
    const live = await probeLease(storage, folder) !== undefined;
    return await new Verification(storage, folder, file).run(live);
  } finally {
    file.close();
  }
}

class Verification {
  readonly #storage: Storage;
  readonly #folder: string;
  readonly #file: StorageFile;
  readonly #blobs: BlobStore;
  readonly #problems: Problem[] = [];
  #record = 0;
  #entries = 0;
  #lastSeq = 0;

  constructor(storage: Storage, folder: string, file: StorageFile) {
    this.#storage = storage;
    this.#folder = folder;
    this.#file = file;
    this.#blobs = new BlobStore(storage, folder);
  }

  async run(live: boolean): Promise<JournalFindings> {
    const bytes = this.#file.size();
    const assessment = new Assessment();
    for await (const lines of linesOf(this.#file, 0, bytes)) {
      for (const line of lines) {
        // A live run's last line may be half written at this moment.
        if (live && !line.ended) continue;
        assessment.take(line);
        await this.#check(line);
      }
    }
    const { damage } = assessment;
    const sign = live || this.#entries > 0
      ? undefined
      : await signOfLife(this.#storage, this.#folder);
    if (sign !== undefined) this.#note(1, 0, "empty", emptiedMessage(sign));
    else if (damage !== undefined && assessment.isTornTail) {
      const how = damage.endedInNewline
        ? "resume goes on with --accept-cut only"
        : "resume sets it aside and goes on";
      this.#note(damage.record, damage.offset, "torn", `The tail from here is torn; ${how}`);
    }
    if (!live) await this.#checkCheckpoint();
    return {
      run_id: runIdOf(this.#folder),
      entries: this.#entries,
      bytes,
      ok: this.#problems.length === 0,
      problems: this.#problems,
    };
  }

  async #check(line: Line): Promise<void> {
    this.#record += 1;
    const { offset } = line;
    const facts = inspectLine(line.bytes);
    if (facts.kind === "damaged") {
      return this.#note(this.#record, offset, "damaged", `Record is damaged: ${facts.problem}`);
    }
    if (facts.kind === "newer") {
      return this.#note(this.#record, offset, "newer", `Format version is ${facts.version}`);
    }
    if (facts.seq !== this.#lastSeq + 1) {
      const wanted = this.#lastSeq + 1;
      this.#note(this.#record, offset, "sequence", `Entry ${facts.seq} where ${wanted} should be`);
    }
    this.#lastSeq = Math.max(this.#lastSeq, facts.seq);
    if (!line.ended) this.#note(this.#record, offset, "newline", "Last record lacks its newline");
    await this.#checkEntry(line);
  }

  async #checkEntry(line: Line): Promise<void> {
    try {
      const { entry, blobs = {} } = decodeLine(line.bytes);
      this.#entries += 1;
      const refs = Object.values(blobs);
      if (entry.type === "run.started" || entry.type === "run.resumed") refs.push(entry.spec);
      const whole = wholeOf(entry);
      if (whole !== undefined) refs.push(whole[1]);
      for (const ref of refs) await this.#blobs.get(ref);
    } catch (thrown) {
      const error = toSysError(thrown);
      const kind = error.code === "INTERNAL" ? "entry" : "blob";
      this.#note(this.#record, line.offset, kind, error.message);
    }
  }

  async #checkCheckpoint(): Promise<void> {
    if (await this.#storage.stat(checkpointPath(this.#folder)) === undefined) return;
    if (await loadCheckpoint(this.#storage, this.#folder, this.#file) !== undefined) return;
    const message = "Checkpoint doesn't fit this journal; resume ignores it";
    this.#note(this.#record, this.#file.size(), "checkpoint", message);
  }

  #note(record: number, offset: number, kind: string, message: string): void {
    if (this.#problems.length < PROBLEMS_MAX) {
      this.#problems.push({ record, offset, kind, message });
    }
  }
}
