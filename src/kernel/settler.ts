/**
 * Settles unknown outcomes: by a person's rule, by policy, or not yet.
 *
 * The same piece works before a resume mounts anything and in a live run. A settling is an entry; the program sees `retry` as a new attempt and everything else as the call's result.
 */
import type { OnUnknown } from "../base/effect.ts";
import type { Json } from "../base/json.ts";
import type { UnknownCall, UnknownDecision } from "../base/operations.ts";
import type { CallAnswer, EntryBody, SettleHow } from "../journal/entry.ts";
import { settleUnknown, type Verdict } from "../policy/settle.ts";
import { gaveUpAnswer, textAnswer, unknownAnswer } from "./answers.ts";
import type { Ledger, OpenCall } from "./ledger.ts";
import type { Observer } from "./ports.ts";
import type { RunLog } from "./run_log.ts";
import { ruleFor, type SettleRule } from "./settle_rules.ts";

export type { SettleRule };

export interface SettlerDeps {
  log: RunLog;
  ledger: Ledger;
  observer: Observer;
  onUnknown: OnUnknown;
}

export class Settler {
  readonly #deps: SettlerDeps;

  constructor(deps: SettlerDeps) {
    this.#deps = deps;
  }

  /** Calls with an unknown outcome. `dead`: no process is at work, so a call without an answer is one too. */
  unknown(dead: boolean): OpenCall[] {
    return this.#deps.ledger.openCalls().filter((open) => dead || open.cause !== undefined);
  }

  /** Settles what can be settled; returns what a person has to decide. */
  settle(dead: boolean, rules: readonly SettleRule[]): OpenCall[] {
    return this.unknown(dead).filter((open) => {
      const decision = ruleFor(rules, open.call);
      if (decision !== undefined) {
        this.decide(open, decision);
        return false;
      }
      const verdict = verdictFor(open, this.#deps.onUnknown, dead ? 0 : this.#sends(open));
      if (verdict === "ask") return true;
      this.#append(open, settledByPolicy(open, verdict));
      return false;
    });
  }

  /** Unknown outcomes of the present process that a person has to decide on; nothing is settled. */
  toDecide(): OpenCall[] {
    return this.unknown(false).filter((open) =>
      verdictFor(open, this.#deps.onUnknown, this.#sends(open)) === "ask"
    );
  }

  /** Settles as a person decided. */
  decide(open: OpenCall, decision: UnknownDecision): void {
    this.#append(open, settledByUser(open, decision));
  }

  #sends(open: OpenCall): number {
    return this.#deps.ledger.state.sends[open.call] ?? 0;
  }

  #append({ tool }: OpenCall, body: SettledBody): void {
    const { log, observer } = this.#deps;
    const { call, how, by } = body;
    const entry = log.append(body);
    log.show(entry.seq, () => observer.emit({ type: "call.settled", call, tool, how, by }));
  }
}

type SettledBody = Extract<EntryBody, { type: "call.settled" }>;

/** The entry that settles a call as policy says. */
export function settledByPolicy(open: OpenCall, verdict: Exclude<Verdict, "ask">): SettledBody {
  return settledBody(open, { how: verdict, by: "policy" }, policyAnswer(open, verdict));
}

/** The entry that settles a call as a person decided. */
export function settledByUser(open: OpenCall, decision: UnknownDecision): SettledBody {
  return settledBody(open, { how: decision.how, by: "user" }, userAnswer(open, decision));
}

function settledBody(
  { call, attempt }: OpenCall,
  settling: { how: SettleHow; by: "policy" | "user" },
  answer: CallAnswer | undefined,
): SettledBody {
  const type = "call.settled";
  return { type, call, attempt, ...settling, ...(answer === undefined ? {} : { answer }) };
}

/** What policy says of a call that the present process has sent `sends` times. */
export function verdictFor(open: OpenCall, onUnknown: OnUnknown, sends = 0): Verdict {
  return settleUnknown({ effect: open.effect, sends, onUnknown });
}

/** An open call as it is shown. */
export function unknownCall(runId: string, open: OpenCall): UnknownCall {
  const { call, tool, effect, attempt, cause = "crash", error } = open;
  const message = error === undefined ? {} : { message: error.message };
  return { run_id: runId, call, tool, effect, cause, ...message, attempt };
}

function policyAnswer(open: OpenCall, verdict: Verdict): CallAnswer | undefined {
  if (verdict === "skip") return unknownAnswer(open);
  return verdict === "gave-up" ? gaveUpAnswer(open) : undefined;
}

function userAnswer(open: OpenCall, decision: UnknownDecision): CallAnswer | undefined {
  if (decision.how === "skip") return unknownAnswer(open);
  if (decision.how !== "done") return undefined;
  return decision.result === undefined
    ? textAnswer("ok", "The call took effect; its result is not known")
    : resultAnswer(decision.result);
}

function resultAnswer(result: Json): CallAnswer {
  const text = typeof result === "string" ? result : JSON.stringify(result);
  return {
    ...textAnswer("ok", text),
    ...(typeof result === "string" ? {} : { structured: result }),
  };
}
