/** State of the agent program: the conversation so far and the calls of its last reply. Plain JSON, so that a checkpoint holds it as it is. */
import { type Json, sha256Hex } from "../base/json.ts";
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
  answer?: CallAnswer;
}

export interface AgentState {
  /** Whether the run has begun. */
  started: boolean;
  messages: Message[];
  /** Hash over all messages, carried on from one to the next. */
  historySha256: string;
  historyChars: number;
  /** Replies so far. */
  turn: number;
  /** Attempt of the next model request. */
  attempt: number;
  /** Calls of the last reply, until all have a result. */
  pending: PendingCall[];
  /** Ids of calls that a provider has seen so far. */
  providerIds: { [id: string]: true };
  /** Model-facing tool names by server, as last mounted. */
  tools: { [server: string]: string[] };
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
    turn: 0,
    attempt: 1,
    pending: [],
    providerIds: {},
    tools: {},
    exited: false,
    lostCalls: [],
    notes: [],
  };
}

/** Adds a message; its hash goes on from the one before, so that a request's hash costs no more the longer the run. */
export function pushMessage(state: AgentState, message: Message): void {
  const text = JSON.stringify(message);
  state.messages.push(message);
  state.historySha256 = sha256Hex(state.historySha256 + text);
  state.historyChars += text.length;
}
