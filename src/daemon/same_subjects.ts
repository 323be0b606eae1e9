/**
 * Refuses to go on with a file that was changed under a run so that what was done would count for something else, or not at all: a workflow's calls are known by the names of its nodes and their places in a list. Items may come at the end, nodes may come or go, and what has not begun may change; but a node that has begun and is gone where another is new has been renamed, for all that can be told, and would be done again.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { canonicalJson, type Json } from "../base/json.ts";
import type { AgentPrompt } from "../agent/agent_program.ts";
import type { RunState } from "../kernel/run_state.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import type { Workflow } from "../manifest/workflow/workflow.ts";
import { WORKFLOW_PROGRAM } from "../workflow/program_name.ts";
import { nodeOf } from "../workflow/workflow_state.ts";
import { programOf, type ProgramState } from "./program_of.ts";

const ITEM_CHARS_MAX = 60;

/** Throws INVALID (exit 2) where a call that has begun is about something else in the manifest as it is now than in the one that the run has stored, or where that is no longer of the run's kind. */
export async function requireSameSubjects(
  past: RunState<ProgramState, AgentPrompt>,
  { stored, present }: { stored: LoadedAgent; present: LoadedAgent },
): Promise<void> {
  const [is, was] = [present.manifest.workflow, stored.manifest.workflow];
  if ((is !== undefined) !== (past.ledger.identity.program === WORKFLOW_PROGRAM)) {
    const [kind, other] = is === undefined
      ? ["a workflow", "an agent"]
      : ["an agent", "a workflow"];
    throw changed(present, `The run is that of ${kind}, and its file is ${other} now`);
  }
  if (is === undefined || was === undefined) return;
  const { end } = past.ledger.state;
  // With a new intent all of it is done anew.
  if (end?.state === "exited" && end.status === "completed") return;
  const before = past.subjects(await programOf(stored));
  const now = past.subjects(await programOf(present));
  for (const [call, item] of before) {
    const other = now.get(call);
    const message = other === undefined
      ? whatIsGone(call, { is, was })
      : canonicalJson(other) === canonicalJson(item)
      ? undefined
      : `Call ${call} was begun for ${told(item)}, and "for_each" has ${
        told(other)
      } in its place now`;
    if (message !== undefined) throw changed(present, message);
  }
}

/** Of a call that has begun and is not there any more; undefined where nothing can have come in its place. */
function whatIsGone(
  call: string,
  { is, was }: { is: Workflow; was: Workflow },
): string | undefined {
  const name = nodeOf(call);
  const [node, old] = [is, was].map(({ nodes }) => nodes.find((each) => each.name === name));
  if (node !== undefined) {
    if ((node.forEach === undefined) === (old?.forEach === undefined)) return undefined;
    return `Node "${name}" has begun ${old?.forEach === undefined ? "without" : "with"} "for_each"`;
  }
  const added = is.nodes.find((each) => !was.nodes.some((known) => known.name === each.name));
  if (added === undefined) return undefined;
  return `Node "${name}" has begun and is not in the file any more, in which "${added.name}" is new`;
}

function changed({ path }: LoadedAgent, message: string): SysError {
  return new SysError("INVALID", message, {
    syscall: "Resume",
    device: path,
    exitCode: EXIT_USAGE,
    hint:
      "Go on with the file as it was: rnix resume RUN --stored; what is new in it goes to the end",
  });
}

function told(item: Json): string {
  const text = JSON.stringify(item);
  const points = Array.from(text);
  return points.length <= ITEM_CHARS_MAX ? text : `${points.slice(0, ITEM_CHARS_MAX).join("")}…`;
}
