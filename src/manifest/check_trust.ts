/** What of a project nobody has agreed to yet: a run of it by name is asked for, or refused where there is nobody to ask. */
import { SysError } from "../base/errors.ts";
import type { CheckedAgent, CheckFault } from "./check.ts";
import type { ProjectFile } from "./project_folder.ts";
import type { ServerTable } from "./server_table.ts";
import type { TrustStore } from "./trust.ts";

type Trust = Pick<TrustStore, "check">;

/** Notes on agents and files of the project, one each; a fault where what was agreed to can't be read. */
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
  const notes: CheckFault[] = [];
  const files = new Map(others.map((file) => [file.path, file]));
  for (const { name, path, scope, loaded } of agents) {
    for (const file of loaded?.projectFiles ?? []) files.set(file.path, file);
    if (scope !== "project" || loaded === undefined) continue;
    const state = await trust.check(loaded);
    if (state === "trusted") continue;
    const message = `it ${sinceWhen(state)}`;
    notes.push({ severity: "note", agent: name, message, hint: hintFor(path) });
  }
  for (const { projectFile } of table?.all ?? []) {
    if (projectFile !== undefined) files.set(projectFile.path, projectFile);
  }
  for (const file of files.values()) {
    const state = await trust.check(file);
    if (state === "trusted") continue;
    const message = `${file.name} of this project ${sinceWhen(state)}`;
    notes.push({ severity: "note", message, hint: hintFor(file.path) });
  }
  return notes;
}

function sinceWhen(state: "changed" | "unknown"): string {
  return state === "changed" ? "has changed since you trusted it" : "is not trusted yet";
}

function hintFor(path: string): string {
  return `Read ${path}, then run with --trust`;
}
