/**
 * Refuses to go on with a list that was changed under a workflow: its calls are known by their places in it, and what was done for one item must not count for another. Items may come at the end, and those that have not begun may change.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { canonicalJson, type Json } from "../base/json.ts";
import type { AgentPrompt } from "../agent/agent_program.ts";
import type { RunState } from "../kernel/run_state.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { programOf, type ProgramState } from "./program_of.ts";

const ITEM_CHARS_MAX = 60;

/** Throws INVALID (exit 2) where a call that has begun is about something else in the manifest as it is now than in the one that the run has stored. */
export async function requireSameSubjects(
  past: RunState<ProgramState, AgentPrompt>,
  { stored, present }: { stored: LoadedAgent; present: LoadedAgent },
): Promise<void> {
  if (present.manifest.workflow === undefined || stored.manifest.workflow === undefined) return;
  const { end } = past.ledger.state;
  // With a new intent all of it is done anew.
  if (end?.state === "exited" && end.status === "completed") return;
  const before = past.subjects(await programOf(stored));
  for (const [call, item] of past.subjects(await programOf(present))) {
    const was = before.get(call);
    if (was === undefined || canonicalJson(was) === canonicalJson(item)) continue;
    const message = `Call ${call} was begun for ${told(was)}, and "for_each" has ${told(item)} ` +
      "in its place now";
    throw new SysError("INVALID", message, {
      syscall: "Resume",
      device: present.path,
      exitCode: EXIT_USAGE,
      hint: "Go on with the list as it was: rnix resume RUN --stored; new items go to its end",
    });
  }
}

function told(item: Json): string {
  const text = JSON.stringify(item);
  const points = Array.from(text);
  return points.length <= ITEM_CHARS_MAX ? text : `${points.slice(0, ITEM_CHARS_MAX).join("")}…`;
}
