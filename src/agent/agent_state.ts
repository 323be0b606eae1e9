/** State of the agent program: the conversation so far and the calls of its last reply. Plain JSON, so that a checkpoint holds it as it is. */
import { isJsonObject, type Json, sha256Hex } from "../base/json.ts";
import type { CallAnswer } from "../kernel/program.ts";
import type { Message } from "../llm/model.ts";

/** A call of the last reply. */
export interface PendingCall {
  /** rnix's name: `t<turn>.<index>`, both from 1. */
  call: string;
  attempt: number;
  tool: string;
  input: Json;
  defect?: string;
  /** Whether its intent says that it changes nothing. */
  isRead?: true;
  answer?: CallAnswer;
}

export interface AgentState {
  /** Whether the run has begun. */
  started: boolean;
  messages: Message[];
  /** Hash over all messages, carried on from one to the next. */
  historySha256: string;
  /** Characters of the messages as JSON; an image counts as what it costs. */
  historyChars: number;
  /** What the last reply's usage says of the size of the conversation with that reply, tokens, and its `historyChars`. */
  measured?: { tokens: number; chars: number };
  /** Whether the provider found the conversation too long, and it wasn't made shorter since. */
  exceeded: boolean;
  /** Turns for which it was compacted last: because it came near the window, or because the provider refused it. */
  compactedFor: { near: number; exceeded: number };
  /** Calls that may have had effects and aren't in the messages any more, a line each, oldest first. */
  done: string[];
  /** Replies so far. */
  turn: number;
  /** Attempt of the next model request. */
  attempt: number;
  /** Calls of the last reply, until all have a result. */
  pending: PendingCall[];
  /** Ids of calls that a provider has seen so far; false: of a call that changes nothing. */
  providerIds: { [id: string]: boolean };
  /** Model-facing tool names by server, as last mounted. */
  tools: { [server: string]: string[] };
  /** Servers that the model was told it has to do without. */
  missing: string[];
  /** Whether it has exited; a later incarnation takes it up again. */
  exited: boolean;
  /** Calls that are known of, but not the reply that made them: it was cut away. */
  lostCalls: string[];
  /** What the model is to be told before its next turn. */
  notes: string[];
  /** How the run is to exit. */
  end?: {
    status: "completed" | "failed";
    result: string;
    error?: { code: string; message: string };
  };
}

export function initialAgentState(): AgentState {
  return {
    started: false,
    messages: [],
    historySha256: "",
    historyChars: 0,
    exceeded: false,
    compactedFor: { near: 0, exceeded: 0 },
    done: [],
    turn: 0,
    attempt: 1,
    pending: [],
    providerIds: {},
    tools: {},
    missing: [],
    exited: false,
    lostCalls: [],
    notes: [],
  };
}

/** An image or a sound costs a model about as much as so many characters, whatever its bytes. */
const MEDIA_CHARS = 6_400;

/** Adds a message; its hash goes on from the one before, so that a request's hash costs no more the longer the run. */
export function pushMessage(state: AgentState, message: Message): void {
  const text = JSON.stringify(message);
  state.messages.push(message);
  state.historySha256 = sha256Hex(state.historySha256 + text);
  state.historyChars += text.length - mediaSurplus(message);
}

/** Characters of messages, as `historyChars` counts them. */
export function charsOf(messages: readonly Message[]): number {
  return messages.reduce(
    (sum, message) => sum + JSON.stringify(message).length - mediaSurplus(message),
    0,
  );
}

/** Replaces the whole history. */
export function replaceMessages(state: AgentState, messages: readonly Message[]): void {
  state.messages = [];
  state.historySha256 = "";
  state.historyChars = 0;
  for (const message of messages) pushMessage(state, message);
}

function mediaSurplus(message: Message): number {
  if (message.role !== "tool") return 0;
  let chars = 0;
  for (const block of message.results.flatMap(({ content }) => content)) {
    const data = isJsonObject(block) ? block["data"] : undefined;
    if (typeof data === "string") chars += Math.max(0, data.length - MEDIA_CHARS);
  }
  return chars;
}
