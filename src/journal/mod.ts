/** The door of the journal: making and opening a run's journal, reading and verifying one. Entry types are in `entry.ts`, the interface the kernel uses in `journal.ts`. */
export { signOfLife } from "./begun.ts";
export type { Cut } from "./cut.ts";
export { cutAhead } from "./cut.ts";
export { BlobStore } from "./blobs.ts";
export { FileJournal } from "./file_journal.ts";
export type { Holder, LeaseTaker } from "./lease.ts";
export { LEASE_RETRY_MS, probeLease, takeLease } from "./lease.ts";
export { MemoryJournal } from "./memory_journal.ts";
export type { OpenedJournal, OpenOptions, ReplayVisitor } from "./open.ts";
export { createJournal, openJournal } from "./open.ts";
export type { ReadReport, RunEnds, VisitEntry } from "./read.ts";
export { readEnds, readRun, visitReadable } from "./read.ts";
export type { Readable } from "./readable.ts";
export { readableEntries } from "./readable.ts";
export type { RepairOutcome } from "./repair.ts";
export { needsRepair, planRepair, repairRun } from "./repair.ts";
export type { Survey } from "./repair_survey.ts";
export { verifyRun } from "./verify.ts";
