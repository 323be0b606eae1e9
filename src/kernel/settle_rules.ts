/**
 * Decisions of a person that come with a resume (`--unknown`), judged before anything is settled.
 *
 * A rule that fits nothing would leave its call to policy, which may repeat it: so each has to fit a call whose outcome is unknown, and two that say different things of one call are refused.
 */
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import type { UnknownDecision } from "../base/operations.ts";

/** A person's decision for one call, or for every one of the run that has no rule of its own. */
export interface SettleRule {
  call?: string;
  decision: UnknownDecision;
  /** The run as the person named it. */
  run?: string;
  /** `run` names another run than the one that is resumed: the rule fits nothing in it. */
  isElsewhere?: true;
}

/** A call as far as rules look at it. */
export interface RuledCall {
  call: string;
  tool: string;
}

/** The decision for a call: the rule that names it, else the one for all. */
export function ruleFor(
  rules: readonly SettleRule[],
  call: string,
): UnknownDecision | undefined {
  return (rules.find((rule) => rule.call === call) ??
    rules.find((rule) => rule.call === undefined))?.decision;
}

/** Whether a rule decides on this call. */
export function ruleFits(rule: SettleRule, { call }: RuledCall): boolean {
  return rule.isElsewhere !== true && (rule.call === undefined || rule.call === call);
}

/** Throws INVALID (exit 2), naming the rule and listing the calls that are unknown, when a rule fits none of them or two contradict each other. */
export function checkRules(
  rules: readonly SettleRule[],
  unknown: readonly RuledCall[],
  device?: string,
): void {
  for (const rule of rules) {
    if (unknown.some((call) => ruleFits(rule, call))) continue;
    throw refused(`"--unknown=${ruleText(rule)}" fits no call whose outcome is unknown`, {
      unknown,
      device,
    });
  }
  for (const [position, rule] of rules.entries()) {
    const other = rules.slice(position + 1).find((later) => contradict(rule, later));
    if (other === undefined) continue;
    const both = `"--unknown=${ruleText(rule)}" and "--unknown=${ruleText(other)}"`;
    throw refused(`${both} contradict each other`, { unknown, device });
  }
}

/** The rule as it is written on a command line. */
export function ruleText({ run, call, decision }: SettleRule): string {
  const where = `${run === undefined ? "" : `${run}/`}${call === undefined ? "" : `${call}:`}`;
  const given = decision.how === "done" && decision.result !== undefined
    ? `=${JSON.stringify(decision.result)}`
    : "";
  return `${where}${decision.how}${given}`;
}

function contradict(one: SettleRule, other: SettleRule): boolean {
  return one.call === other.call && decisionText(one) !== decisionText(other);
}

function decisionText({ decision }: SettleRule): string {
  return ruleText({ decision });
}

function refused(
  message: string,
  { unknown, device }: { unknown: readonly RuledCall[]; device: string | undefined },
): SysError {
  const calls = unknown.map(({ call, tool }) => `${call} (${tool})`).join(", ");
  return new SysError("INVALID", message, {
    syscall: "Resume",
    device,
    exitCode: EXIT_USAGE,
    hint: unknown.length === 0
      ? "No call of this run has an unknown outcome; nothing was settled or sent"
      : `Unknown are: ${calls}; nothing was settled or sent`,
  });
}
