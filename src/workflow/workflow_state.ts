/**
 * State of a workflow: what became of each try of each call, as the journal tells it. It knows nothing of the workflow itself, so that a run can be folded before its manifest is read; what the tries mean for nodes is worked out in `survey.ts`.
 *
 * A round is what lies between two ends of the run: a workflow that has failed and is taken up again tries anew what had failed, and keeps what had succeeded. Plain JSON, so that a checkpoint holds it as it is.
 */
import { blockText } from "../base/content_block.ts";
import type { Json } from "../base/json.ts";
import type { CallAnswer, Entry, EntryOf } from "../kernel/program.ts";

/** Version of `reduce`; raised when the same entries would fold to another state. */
export const WORKFLOW_VERSION = 3;

/** What one try came to. */
export interface Outcome {
  attempt: number;
  round: number;
  isOk: boolean;
  /** The answer, or what went wrong. */
  text: string;
  /** It was never sent: a repeat would come to the same. */
  unsent?: true;
}

/** A call, by its id: `n.<node>` or `n.<node>.<item>`. */
export interface CallRecord {
  /** Of the last try that began. */
  attempt: number;
  /** Whether that try is at work. */
  isOpen: boolean;
  outcomes: Outcome[];
  /** The round in which a child of it ended without success, which can be taken up again: the last one that did. */
  endedRound?: number;
}

/** All that the journal says. */
export interface WorkflowState {
  /** Whether the run has begun. */
  started: boolean;
  intent: string;
  exited: boolean;
  /** Rises whenever the run is taken up after its end. */
  round: number;
  /** Outcomes of earlier rounds don't count at all: a completed run was given a new intent. */
  freshRound: number;
  calls: { [call: string]: CallRecord };
  /** Nodes that have begun, and are not to be judged by their `when` again. */
  begun: { [node: string]: true };
  /** Pauses that are over, by key. */
  timers: { [key: string]: true };
}

/** Before the first entry. */
export function initialState(): WorkflowState {
  return {
    started: false,
    intent: "",
    exited: false,
    round: 0,
    freshRound: 0,
    calls: {},
    begun: {},
    timers: {},
  };
}

/** A person, or the manifest, says that the run is to fail where this isn't known. */
const UNKNOWN: CallAnswer = {
  outcome: "error",
  content: [{ type: "text", text: "[UNKNOWN_OUTCOME] It is not known what became of it" }],
};

/** Id of a node's call, of one of its items where it has several. */
export function callOf(node: string, item?: number): string {
  return item === undefined ? `n.${node}` : `n.${node}.${item}`;
}

/** The node of a call. */
export function nodeOf(call: string): string {
  return call.split(".")[1] ?? "";
}

/** Folds one entry. */
export function reduce(state: WorkflowState, entry: Entry): WorkflowState {
  switch (entry.type) {
    case "run.started":
      state.started = true;
      state.intent = entry.intent;
      break;
    case "run.resumed":
      takeUpAgain(state, entry.intent);
      break;
    case "call.intent": {
      const record = recordOf(state, entry.call);
      record.attempt = entry.attempt;
      record.isOpen = true;
      break;
    }
    case "child.exited":
      noteChild(state, entry);
      break;
    case "call.result":
      if (entry.outcome === "unknown") break;
      // Nothing is left of the child.
      if (entry.error?.code === "NOT_FOUND") delete recordOf(state, entry.call).endedRound;
      take(state, entry, entry, entry.error !== undefined);
      break;
    case "call.settled":
      if (entry.answer !== undefined) take(state, entry, entry.answer, false);
      else if (entry.how === "fail") take(state, entry, UNKNOWN, true);
      else recordOf(state, entry.call).isOpen = false;
      break;
    case "timer":
      state.timers[entry.key] = true;
      break;
    case "run.exited":
      state.exited = true;
      break;
  }
  return state;
}

function noteChild(
  state: WorkflowState,
  { call, pid, status }: EntryOf<"child.exited">,
): void {
  const record = recordOf(state, call);
  delete record.endedRound;
  // Also one that had done nothing by then: a person may have taken it up meanwhile.
  if (status === "completed" || pid === undefined) return;
  record.endedRound = state.round;
}

function takeUpAgain(state: WorkflowState, intent: string | undefined): void {
  if (!state.exited) return;
  state.exited = false;
  state.round += 1;
  if (intent === undefined) return;
  state.intent = intent;
  state.freshRound = state.round;
  state.begun = {};
}

function recordOf(state: WorkflowState, call: string): CallRecord {
  state.begun[nodeOf(call)] = true;
  const known = Object.hasOwn(state.calls, call) ? state.calls[call] : undefined;
  const record = known ?? { attempt: 0, isOpen: false, outcomes: [] };
  state.calls[call] = record;
  return record;
}

function take(
  state: WorkflowState,
  { call, attempt }: { call: string; attempt: number },
  answer: CallAnswer,
  unsent: boolean,
): void {
  const record = recordOf(state, call);
  record.attempt = Math.max(record.attempt, attempt);
  record.isOpen = false;
  record.outcomes.push({
    attempt,
    round: state.round,
    isOk: answer.outcome === "ok",
    text: textOf(answer.content),
    ...(unsent ? { unsent: true } : {}),
  });
}

function textOf(content: readonly Json[]): string {
  return content.map(blockText).filter((text) => text !== "").join("\n");
}
