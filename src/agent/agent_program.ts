/**
 * The agent: asks its model, lets the tools run that the model asks for, gives it the results, until it answers without asking for more.
 *
 * Every model request carries exactly one result per call of every earlier reply: the next turn is decided only when all calls of the last one have their answer. A conversation that comes near the model's window is compacted before the turn is asked for (`compaction.ts`).
 */
import type { Action, CallAnswer, Entry, EntryOf, Program } from "../kernel/program.ts";
import { callKey, compactKey, modelKey } from "../kernel/program.ts";
import { noteOf } from "../base/note.ts";
import { alteredNumber, type Json, JSON_DEPTH_MAX, nestsDeeper, sha256Hex } from "../base/json.ts";
import type { AssistantMessage, AssistantPart, ToolResult } from "../llm/model.ts";
import type { AgentPrompt } from "./agent_prompt.ts";
import {
  type AgentState,
  initialAgentState,
  type PendingCall,
  pushMessage,
} from "./agent_state.ts";
import { compact, isCompactable, planCompaction } from "./compaction.ts";
import { headOf, summaryPrompt, usableSummary } from "./summary.ts";

/** Version of `reduce`; raised when the same entries would fold to another state. */
export const AGENT_VERSION = 4;

const EXCERPT_CHARS = 80;
/** Lost calls that the model is told by name. */
const LOST_CALLS_TOLD = 20;

/** What an agent decides with, beside its state. */
export interface AgentRules {
  /** Tokens that its model takes; undefined where it isn't known. */
  contextWindow?: number | undefined;
}

export type { AgentPrompt } from "./agent_prompt.ts";

type AgentAction = Action<AgentPrompt>;
type ToolCallPart = Extract<AssistantPart, { type: "tool-call" }>;

/** The program of an agent whose system text is `system`. */
export function agentProgram(
  system: string,
  rules: AgentRules = {},
): Program<AgentState, AgentPrompt> {
  const systemSha256 = sha256Hex(system);
  return {
    name: "agent",
    version: AGENT_VERSION,
    initial: initialAgentState,
    reduce,
    decide: (state) => decide(state, { system, systemSha256 }, rules),
    summaryOf: usableSummary,
    save: (state) => state as unknown as Json,
    load: (saved) => saved as unknown as AgentState,
  };
}

function decide(
  state: AgentState,
  { system, systemSha256 }: { system: string; systemSha256: string },
  rules: AgentRules,
): AgentAction[] {
  if (!state.started) return [];
  if (state.end !== undefined) return [{ kind: "exit", ...state.end }];
  if (state.pending.length > 0) {
    return state.pending.filter((call) => call.answer === undefined).map(callAction);
  }
  const compaction = compactAction(state, system, rules);
  if (compaction !== undefined) return [compaction];
  const turn = state.turn + 1;
  const prompt: AgentPrompt = {
    system,
    messages: state.messages,
    sha256: sha256Hex(systemSha256 + state.historySha256),
    tokensEstimate: Math.ceil((state.historyChars + system.length) / 4),
  };
  return [{
    kind: "model",
    key: modelKey(turn, state.attempt),
    turn,
    attempt: state.attempt,
    prompt,
    ...(isCompactable(state) ? { compactable: true } : {}),
  }];
}

function compactAction(
  state: AgentState,
  system: string,
  { contextWindow }: AgentRules,
): AgentAction | undefined {
  const plan = planCompaction(state, { systemChars: system.length, contextWindow });
  if (plan === undefined) return undefined;
  const { from, to, summaryChars } = plan;
  const turn = state.turn + 1;
  return {
    kind: "compact",
    key: compactKey(turn, state.attempt),
    turn,
    attempt: state.attempt,
    from,
    to,
    ...(summaryChars === undefined
      ? {}
      : { prompt: summaryPrompt(state.messages, { from, to, charsMax: summaryChars }) }),
  };
}

function callAction({ call, attempt, tool, input, defect }: PendingCall): AgentAction {
  return {
    kind: "call",
    key: callKey(call, attempt),
    call,
    attempt,
    tool,
    input,
    ...(defect === undefined ? {} : { defect }),
  };
}

function reduce(state: AgentState, entry: Entry): AgentState {
  switch (entry.type) {
    case "run.started":
      state.started = true;
      pushMessage(state, { role: "user", text: entry.intent === "" ? "Begin." : entry.intent });
      break;
    case "run.resumed":
      takeUpAgain(state, entry.intent);
      break;
    case "journal.cut":
      // Lost replies may have had these turn numbers: their call ids and idempotency keys must not be used again.
      state.turn += entry.records;
      noteCut(state);
      break;
    case "call.intent":
      noteIntent(state, entry);
      break;
    case "mount.ready":
      noteBack(state, entry.server);
      noteWithdrawn(state, entry);
      break;
    case "mount.changed":
      noteWithdrawn(state, entry);
      break;
    case "mount.failed":
      noteMissing(state, entry);
      break;
    case "model.reply":
      takeReply(state, entry);
      break;
    case "context.exceeded":
      state.exceeded = true;
      state.compactedFor.exceeded = entry.turn;
      state.attempt += 1;
      break;
    case "context.compacted":
      compact(state, entry);
      break;
    case "call.result":
      if (entry.outcome !== "unknown") takeAnswer(state, entry.call, entry);
      break;
    case "call.settled":
      takeSettled(state, entry);
      break;
    case "run.exited":
      state.exited = true;
      break;
  }
  flushNotes(state);
  return state;
}

function takeUpAgain(state: AgentState, intent: string | undefined): void {
  const last = state.messages.at(-1);
  state.attempt += 1;
  // Cut off between its last reply and its exit, it only has to exit.
  if (!state.exited) return;
  state.exited = false;
  delete state.end;
  if (intent !== undefined) pushMessage(state, { role: "user", text: intent });
  else if (last?.role === "assistant" && state.pending.length === 0) {
    pushMessage(state, { role: "user", text: "Go on." });
  }
}

function noteIntent(state: AgentState, entry: EntryOf<"call.intent">): void {
  const pending = state.pending.find(({ call }) => call === entry.call);
  // Of a reply that was cut away: only this is left of the call.
  if (pending === undefined) state.lostCalls.push(`${entry.call} ("${entry.tool}")`);
  else if (entry.effect === "read") pending.isRead = true;
}

/** Without a server that is required nothing goes on, so the model isn't told of it. */
function noteMissing(state: AgentState, entry: EntryOf<"mount.failed">): void {
  if (entry.required) return;
  state.notes.push(`The server "${entry.server}" is not available: ${entry.error.message}`);
  if (!state.missing.includes(entry.server)) state.missing.push(entry.server);
}

/** What the model was told of a server must not outlive it. */
function noteBack(state: AgentState, server: string): void {
  if (!state.missing.includes(server)) return;
  state.missing = state.missing.filter((other) => other !== server);
  state.notes.push(`The server "${server}" is available now`);
}

function noteWithdrawn(state: AgentState, entry: EntryOf<"mount.ready" | "mount.changed">): void {
  const names = Object.values(entry.tools).map((tool) => tool.name);
  const before = Object.hasOwn(state.tools, entry.server) ? state.tools[entry.server] ?? [] : [];
  const gone = before.filter((name) => !names.includes(name));
  state.tools[entry.server] = names;
  if (gone.length > 0) {
    state.notes.push(`The server "${entry.server}" has withdrawn tools: ${gone.join(", ")}`);
  }
}

/** The model may decide anew what it had decided in a reply that was cut away. */
function noteCut(state: AgentState): void {
  const { lostCalls } = state;
  const told = lostCalls.slice(0, LOST_CALLS_TOLD).join(", ");
  const more = lostCalls.length > LOST_CALLS_TOLD ? ", and others" : "";
  const calls = lostCalls.length === 0 ? "" : ` Calls that may have taken effect: ${told}${more}.`;
  state.lostCalls = [];
  state.notes.push(
    "The latest records of this run were lost: replies of yours may be among them, and calls that they made." +
      `${calls} Check before you do anything that may be done already.`,
  );
}

/** Notes go between turns, so that no call is parted from its result. */
function flushNotes(state: AgentState): void {
  if (state.pending.length > 0 || state.notes.length === 0 || state.end !== undefined) return;
  pushMessage(state, { role: "user", text: noteOf(state.notes.join("\n")) });
  state.notes = [];
}

function takeReply(state: AgentState, entry: EntryOf<"model.reply">): void {
  const message = entry.message as unknown as AssistantMessage;
  const calls = message.parts.filter((part): part is ToolCallPart => part.type === "tool-call");
  state.turn = entry.turn;
  state.attempt = 1;
  state.pending = calls.map((part, index) => pendingCall(part, `t${entry.turn}.${index + 1}`));
  const callIds = calls.map((part, index) => takeId(state, part, `t${entry.turn}.${index + 1}`));
  pushMessage(state, { role: "assistant", parts: message.parts, callIds });
  const tokens = entry.usage.input_tokens + entry.usage.output_tokens;
  state.measured = { tokens, chars: state.historyChars };
  state.exceeded = false;
  if (calls.length > 0) return;
  const result = message.parts.map((part) => part.type === "text" ? part.text : "").join("");
  state.end = endOf(entry.finish_reason, result);
}

function pendingCall(part: ToolCallPart, call: string): PendingCall {
  return {
    call,
    attempt: 1,
    tool: part.tool,
    input: part.input,
    ...(part.malformed === undefined ? {} : {
      defect: `The arguments are ${faultOf(part.malformed)}: ${excerpt(part.malformed)}`,
    }),
  };
}

function faultOf(malformed: string): string {
  try {
    const value: Json = JSON.parse(malformed);
    if (nestsDeeper(value)) return `nested too deep (more than ${JSON_DEPTH_MAX} levels)`;
    return `not sent, since the number ${
      excerpt(alteredNumber(malformed) ?? "")
    } can't be kept exactly (as text in quotes it can)`;
  } catch {
    return "not valid JSON";
  }
}

/** The provider's own id where it can be told apart from all others of the run, else rnix's; with a mark where a provider has used even that. */
function takeId(state: AgentState, part: ToolCallPart, call: string): string {
  let id = part.provider_id === "" ? call : part.provider_id;
  if (Object.hasOwn(state.providerIds, id)) id = call;
  while (Object.hasOwn(state.providerIds, id)) id += "-";
  state.providerIds[id] = true;
  return id;
}

function endOf(finishReason: string, result: string): NonNullable<AgentState["end"]> {
  if (finishReason === "length") {
    const message = "The model's reply was cut at its output limit";
    return { status: "failed", result, error: { code: "RESOURCE_EXHAUSTED", message } };
  }
  if (finishReason === "content-filter") {
    const message = "The model's provider withheld the reply (content filter)";
    return { status: "failed", result, error: { code: "PERMISSION", message } };
  }
  return { status: "completed", result };
}

function takeSettled(state: AgentState, entry: EntryOf<"call.settled">): void {
  const pending = state.pending.find((call) => call.call === entry.call);
  if (pending === undefined) return;
  if (entry.how === "retry") {
    pending.attempt = entry.attempt + 1;
    return;
  }
  if (entry.how === "fail") {
    const message = `It is not known whether call ${entry.call} ("${pending.tool}") took effect`;
    state.end = { status: "failed", result: "", error: { code: "UNKNOWN_OUTCOME", message } };
  }
  const text = "[UNKNOWN_OUTCOME] It is not known whether this call took effect";
  takeAnswer(
    state,
    entry.call,
    entry.answer ?? { outcome: "error", content: [{ type: "text", text }] },
  );
}

function takeAnswer(state: AgentState, call: string, answer: CallAnswer): void {
  const pending = state.pending.find((one) => one.call === call);
  if (pending === undefined) return;
  pending.answer = {
    outcome: answer.outcome,
    content: answer.content,
    ...(answer.structured === undefined ? {} : { structured: answer.structured }),
  };
  if (state.pending.some((one) => one.answer === undefined)) return;
  const last = state.messages.at(-1);
  const ids = last?.role === "assistant" ? last.callIds : [];
  const results = state.pending.map((one, index) => {
    const id = ids[index] ?? one.call;
    if (one.isRead) state.providerIds[id] = false;
    return toolResult(one, id);
  });
  state.pending = [];
  pushMessage(state, { role: "tool", results });
}

function toolResult({ tool, answer }: PendingCall, id: string): ToolResult {
  return {
    id,
    tool,
    isError: answer?.outcome === "error",
    content: answer?.content ?? [],
    ...(answer?.structured === undefined ? {} : { structured: answer.structured }),
  };
}

function excerpt(text: string): string {
  return JSON.stringify(headOf(text, EXCERPT_CHARS));
}
