/** What a scenario of the crash harness says: what its models play, and what goes wrong without a crash. */
import type { Budget } from "../../src/base/budget.ts";
import type { OnUnknown } from "../../src/base/effect.ts";
import type { SuspendReason } from "../../src/base/exit.ts";
import type { AgentFacts, Turn } from "./world.ts";

/** A short run, of an agent or a workflow. */
export interface Scenario {
  name: string;
  turns: Turn[];
  onUnknown: OnUnknown;
  /** Limits of the run; a run that they suspend is resumed without them. */
  budget?: Budget;
  /** Results over so many tokens are cut. */
  resultTokensMax?: number;
  /** Window of the model, tokens. */
  contextWindow?: number;
  /** Characters of a history over which the model refuses it, and so many of a request for a summary. */
  refuses?: { charsMax: number; summaryCharsMax: number };
  /** Reason for which the uncut run is suspended on its way. */
  suspends?: SuspendReason;
  /** It fails at first, and is taken up again by a person. */
  fails?: true;
  /** Suspended from outside so long after its start, milliseconds. */
  stopAt?: { ms: number; reason: SuspendReason };
  /** A person writes to a device this long after the start, milliseconds. */
  operatorAtMs?: number;
  /** Agents that it may start, and these one another. */
  agents?: { readonly [name: string]: AgentFacts };
  /** Its root is a workflow: the file but for kind and name. */
  workflow?: string;
  /** Has tools of rnix itself. */
  hasOwnTools?: true;
  /** Turn (from 0) at which the provider is down for as long as one process tries. */
  modelDownAt?: number;
  /** The mount (from 1) that fails. */
  mountFailsAt?: number;
  /** Part of the points that come too early to matter and are only sampled, 0 to 1. */
  dull?: number;
}
