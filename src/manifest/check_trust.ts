/** What of a project nobody has agreed to yet: a run of it by name is asked for, or refused where there is nobody to ask. */
import { SysError } from "../base/errors.ts";
import type { CheckedAgent, CheckFault } from "./check.ts";
import type { ProjectFile } from "./project_folder.ts";
import type { ServerTable } from "./server_table.ts";
import { coveredBy, type CoveredFile, coveredFile, type TrustStore } from "./trust.ts";

type Trust = Pick<TrustStore, "untrusted">;

/** Notes on files of the project, one each; a fault where what was agreed to can't be read. */
export async function checkTrust(
  agents: readonly CheckedAgent[],
  table: ServerTable | undefined,
  trust: Trust,
  others: readonly ProjectFile[] = [],
): Promise<CheckFault[]> {
  try {
    return await notesOn(agents, table, trust, others);
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    const { message, hint, device } = thrown;
    return [{
      severity: "fault",
      message,
      ...hint === undefined ? {} : { hint },
      ...device === undefined ? {} : { file: device },
    }];
  }
}

async function notesOn(
  agents: readonly CheckedAgent[],
  table: ServerTable | undefined,
  trust: Trust,
  others: readonly ProjectFile[],
): Promise<CheckFault[]> {
  const ofTable = (table?.all ?? []).flatMap(({ projectFile }) => projectFile ?? []);
  const files: CoveredFile[] = [
    ...agents.flatMap(({ scope, loaded }) => loaded === undefined ? [] : coveredBy(loaded, scope)),
    ...[...ofTable, ...others].map(coveredFile),
  ];
  return (await trust.untrusted(files)).map(({ path, state, decides }): CheckFault => {
    const since = state === "changed" ? "has changed since you trusted it" : "is not trusted yet";
    return {
      severity: "note",
      file: path,
      message: `it ${since}; it decides ${decides}`,
      hint: `Read ${path}, then run with --trust`,
    };
  });
}
