/** A look at every skill that can be named, whether an agent names it or not. */
import type { CheckFault } from "./check.ts";
import { Problems } from "./problems.ts";
import type { SkillTable } from "./skill_table.ts";

/** What is wrong with the skills: mistakes as warnings, because a run that names none of them minds none. */
export async function checkSkills(table: SkillTable): Promise<CheckFault[]> {
  const problems = new Problems();
  for (const { name } of table.all) await table.read(name, problems);
  return problems.list.map((problem) => ({ severity: "warning", ...problem }));
}
