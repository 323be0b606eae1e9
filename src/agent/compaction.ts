/**
 * How an agent's history is made shorter, so that its model can go on.
 *
 * When: the turn that is due would be over a share of the model's window, or its provider has found the conversation too long; each at most once for a turn. The window of a model that isn't known is found only in the second way.
 * What: of the messages after the first, all but the last turns. A summary takes their place; where the model gives none, they stay and what their tool results held is left out.
 *
 * Invariants
 * 1. A turn, its reply with the results of all its calls, is kept or replaced as a whole; replies that stay are kept as they are, a provider's metadata included.
 * 2. What the user said stays word for word.
 * 3. Calls that may have had effects are named to the model also when their turns are gone, by rnix and not by the summary.
 * 4. The fold needs only the entry and the history: a resume comes to the same messages without asking again.
 */
import { isNote, noteOf } from "../base/note.ts";
import type { EntryOf } from "../kernel/program.ts";
import type { Message, ToolResult } from "../llm/model.ts";
import { type AgentState, charsOf, replaceMessages } from "./agent_state.ts";
import { headOf } from "./summary.ts";

/** Of the window that a request may take before the history is compacted. */
const WINDOW_SHARE_MAX = 0.8;
/** Of the window, or of the conversation where that isn't known, that the turns which stay may take; the last one stays in any case. */
const TAIL_SHARE_MAX = 0.5;
/** Of the window that must be won at least: less isn't worth a request each turn. */
const WON_SHARE_MIN = 0.1;
/** Of the window that a request for a summary may take. */
const SUMMARY_SHARE_MAX = 0.6;
/** Turns that stay as they are, where there is room for them. */
const TURNS_KEPT = 4;
const CHARS_PER_TOKEN = 4;
/** The first message is the intent: it always stays. */
const FIRST = 1;
/** Calls with effects that the model is still told of by name. */
const DONE_TOLD = 50;
const INPUT_CHARS_SHOWN = 160;

/** Begins what the model is told of a call that may or may not have taken effect. */
const UNKNOWN_MARK = "[UNKNOWN_OUTCOME]";
const LEFT_OUT = "[… this result was left out: the conversation has become too long]";

/** What is to be compacted. */
export interface CompactionPlan {
  from: number;
  to: number;
  /** Characters that a request for a summary may have; absent: no summary is to be had. */
  summaryChars?: number;
}

/** Tokens of the request that is due, tools included once a reply has told of them. */
function estimate(state: AgentState, systemChars: number): number {
  const { measured, historyChars } = state;
  const guessed = (historyChars + systemChars) / CHARS_PER_TOKEN;
  if (measured === undefined) return guessed;
  return Math.max(guessed, measured.tokens + (historyChars - measured.chars) / CHARS_PER_TOKEN);
}

/** Whether the history could be made shorter if the provider found the turn that is due too long. */
export function isCompactable({ compactedFor, turn, messages }: AgentState): boolean {
  return compactedFor.exceeded !== turn + 1 && messages.some(({ role }) => role === "assistant");
}

/** What to compact before the turn that is due; undefined: nothing. */
export function planCompaction(
  state: AgentState,
  { systemChars, contextWindow }: { systemChars: number; contextWindow: number | undefined },
): CompactionPlan | undefined {
  const tokens = estimate(state, systemChars);
  const isNear = contextWindow !== undefined && tokens > WINDOW_SHARE_MAX * contextWindow &&
    state.compactedFor.near !== state.turn + 1;
  if (!isNear && !state.exceeded) return undefined;
  const window = Math.min(contextWindow ?? Infinity, tokens);
  const to = firstKept(state.messages, TAIL_SHARE_MAX * window * CHARS_PER_TOKEN);
  if (to !== undefined) {
    const won = charsOf(state.messages.slice(FIRST, to)) / CHARS_PER_TOKEN;
    const summaryChars = Math.floor(SUMMARY_SHARE_MAX * window * CHARS_PER_TOKEN);
    if (state.exceeded || won >= WON_SHARE_MIN * window) return { from: FIRST, to, summaryChars };
  }
  // One turn alone is too long: only what its calls brought can be left out.
  const canLeaveOut = state.messages.some((message) =>
    message.role === "tool" && message.results.some((result) => isLong(result))
  );
  return state.exceeded && canLeaveOut ? { from: FIRST, to: state.messages.length } : undefined;
}

/** Index of the reply from which on the turns stay; undefined where there is none before it. */
function firstKept(messages: readonly Message[], charsMax: number): number | undefined {
  const starts = messages.flatMap(({ role }, index) => role === "assistant" ? [index] : []);
  for (let kept = Math.min(TURNS_KEPT, starts.length - 1); kept > 0; kept -= 1) {
    const start = starts[starts.length - kept];
    if (start === undefined) return undefined;
    if (kept === 1 || charsOf(messages.slice(start)) <= charsMax) return start;
  }
  return undefined;
}

/** Folds a compaction. */
export function compact(state: AgentState, entry: EntryOf<"context.compacted">): void {
  const { from, to, summary } = entry;
  if (!state.exceeded) state.compactedFor.near = entry.turn;
  state.exceeded = false;
  const messages = summary === undefined
    ? state.messages.map((message, index) =>
      index >= from && index < to ? withoutResults(message) : message
    )
    : withSummary(state, entry, summary);
  replaceMessages(state, messages);
}

function withSummary(
  state: AgentState,
  { from, to }: EntryOf<"context.compacted">,
  summary: string,
): Message[] {
  const replaced = state.messages.slice(from, to);
  state.done = [...state.done, ...callsIn(replaced, state.providerIds)].slice(-DONE_TOLD);
  const said = replaced.filter((message) => message.role === "user" && !isNote(message.text));
  const repliesBefore = replaced.reduce((sum, message) => {
    if (message.role === "user") return sum + (message.repliesBefore ?? 0);
    return message.role === "assistant" ? sum + 1 : sum;
  }, 0);
  const text = summaryText(summary, state.done);
  return [
    ...state.messages.slice(0, from),
    ...said,
    { role: "user", text, repliesBefore },
    ...state.messages.slice(to),
  ];
}

function summaryText(summary: string, done: readonly string[]): string {
  const calls = done.length === 0
    ? ""
    : `\n\nThe latest calls of that part that may have had effects, which must not be repeated ` +
      `without need:\n${done.map((line) => `- ${line}`).join("\n")}`;
  return noteOf(
    `The conversation became too long. Your own summary of its earlier part:\n\n${summary}${calls}`,
  );
}

/** A line for each call that may have had an effect. */
function callsIn(messages: readonly Message[], mayHaveEffect: AgentState["providerIds"]): string[] {
  return messages.flatMap((message, index) => {
    if (message.role !== "assistant") return [];
    const next = messages[index + 1];
    const results = next?.role === "tool" ? next.results : [];
    const calls = message.parts.filter((part) => part.type === "tool-call");
    return calls.flatMap((part, position) => {
      const id = message.callIds[position] ?? "";
      if (mayHaveEffect[id] === false) return [];
      const input = headOf(JSON.stringify(part.input), INPUT_CHARS_SHOWN);
      return [`${part.tool} ${input}: ${outcomeOf(results.find((result) => result.id === id))}`];
    });
  });
}

function outcomeOf(result: ToolResult | undefined): string {
  if (result?.isError !== true) return "ok";
  return JSON.stringify(result.content).includes(UNKNOWN_MARK) ? "outcome unknown" : "error";
}

function withoutResults(message: Message): Message {
  if (message.role !== "tool") return message;
  return {
    ...message,
    results: message.results.map((result) => isLong(result) ? short(result) : result),
  };
}

function isLong({ content, structured }: ToolResult): boolean {
  return JSON.stringify([content, structured ?? null]).length > 2 * LEFT_OUT.length;
}

function short({ id, tool, isError }: ToolResult): ToolResult {
  return { id, tool, isError, content: [{ type: "text", text: LEFT_OUT }] };
}
