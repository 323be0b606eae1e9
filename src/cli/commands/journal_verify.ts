/** `rnix journal verify`: reads a run's journal to its end and says where it is damaged. */
import { shortRunId } from "../../base/ids.ts";
import type { JournalFindings } from "../../base/operations.ts";
import { bytes, counted } from "../amounts.ts";
import type { Command } from "../command.ts";
import { oneLine } from "../plain_text.ts";

export const journalVerify: Command = {
  name: "journal verify",
  summary: "Check the journal of a run",
  positionals: [{ name: "run", kind: "run" }],
  flags: [],
  details: "Exits 0 when the journal is whole, 1 when there is damage.",
  async run(invocation, context) {
    const system = await context.system();
    const findings = await system.verifyJournal(invocation.words[0] ?? "");
    const text = findingsText(findings);
    if (findings.ok) return { exitCode: 0, data: findings, text };
    return {
      exitCode: 1,
      data: findings,
      text,
      error: {
        code: "JOURNAL_DAMAGED",
        message: `Journal of run ${shortRunId(findings.run_id)} has ${
          counted(findings.problems.length, "problem")
        }`,
      },
      errorTold: true,
      ...(wantsRepair(findings) ? { footer: [repairText(findings)] } : {}),
    };
  },
};

/** Kinds of problems that a repair deals with. */
const REPAIRABLE: readonly string[] = ["damaged", "sequence", "entry", "blob"];

/** A torn tail is left to resume. */
function wantsRepair({ problems }: JournalFindings): boolean {
  return problems.some(({ kind }) => REPAIRABLE.includes(kind)) &&
    !problems.some(({ kind }) => kind === "torn" || kind === "newer");
}

function repairText({ run_id }: JournalFindings): string {
  return `hint: rnix journal repair ${shortRunId(run_id)} says what could be kept`;
}

/** Findings as lines. */
export function findingsText(findings: JournalFindings): string {
  const size = `${counted(findings.entries, "record")}, ${bytes(findings.bytes)}`;
  const verdict = findings.ok ? "whole" : counted(findings.problems.length, "problem");
  return [
    `run ${shortRunId(findings.run_id)}: ${size}, ${verdict}`,
    ...findings.problems.map(({ record, offset, kind, message }) =>
      oneLine(`record ${record} at byte ${offset}: ${kind}: ${message}`)
    ),
  ].join("\n");
}
