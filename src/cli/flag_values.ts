/** Reads values of flags: budgets, limits, and how to settle an unknown outcome. Every mistake is a usage error that says what was expected. */
import type { Budget } from "../base/budget.ts";
import { DURATION_EXAMPLES, parseDuration } from "../base/duration.ts";
import { ON_UNKNOWN, type OnUnknown } from "../base/effect.ts";
import { alteredNumber, type Json, nestsDeeper } from "../base/json.ts";
import { nearest } from "../base/nearest.ts";
import type { UnknownDecision, UnknownRule } from "../base/operations.ts";
import { usageError } from "./arguments.ts";
import type { Invocation } from "./command.ts";

/** The only value of a flag, or undefined. */
export function valueOf(invocation: Invocation, flag: string): string | undefined {
  return invocation.values.get(flag)?.[0];
}

export function hasSwitch(invocation: Invocation, flag: string): boolean {
  return invocation.values.has(flag);
}

/** A whole number from `min` upwards. */
export function wholeNumber(shown: string, text: string, min: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(number) && number >= min) return number;
  throw usageError(
    `"${shown}" must be a whole number from ${min} upwards, but is "${text}"`,
    `e.g. ${Math.max(min, 10)}`,
  );
}

function duration(shown: string, text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw usageError(`"${shown}" must be a duration, but is "${text}"`, `e.g. ${DURATION_EXAMPLES}`);
}

/** An amount above nothing, US dollars. */
function dollars(shown: string, text: string): number {
  const amount = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (Number.isFinite(amount) && amount > 0) return amount;
  throw usageError(`"${shown}" must be an amount in dollars, but is "${text}"`, "e.g. 2 or 0.5");
}

const BUDGET_KEYS = ["turns", "tokens", "tool_calls", "duration", "cost_usd"] as const;

/** `--budget k=v` (repeated), `--max-turns`, `--timeout`: one limit each, given once. Undefined when none is given. */
export function budgetOf(invocation: Invocation): Budget | undefined {
  const budget: Budget = {};
  const given = new Map<string, string>();
  const set = (key: (typeof BUDGET_KEYS)[number], shown: string, text: string) => {
    const before = given.get(key);
    if (before !== undefined) {
      throw usageError(`"${shown}" and "${before}" set the same limit`, "give one of them");
    }
    given.set(key, shown);
    if (key === "duration") budget.duration_ms = duration(shown, text);
    else if (key === "cost_usd") budget.cost_usd = dollars(shown, text);
    else budget[key] = wholeNumber(shown, text, 1);
  };
  for (const pair of invocation.values.get("budget") ?? []) {
    const [word = "", text] = splitOnce(pair, "=");
    const key = BUDGET_KEYS.find((each) => each === word);
    if (key === undefined || text === undefined) throw badBudget(pair, word);
    set(key, `--budget ${key}`, text);
  }
  const turns = valueOf(invocation, "max-turns");
  if (turns !== undefined) set("turns", "--max-turns", turns);
  const timeout = valueOf(invocation, "timeout");
  if (timeout !== undefined) set("duration", "--timeout", timeout);
  return given.size === 0 ? undefined : budget;
}

/** A flag of NAME=VALUE (repeated), such as `--set`, each name once. Undefined when none is given. */
export function namedValuesOf(
  invocation: Invocation,
  flag: string,
): { [name: string]: string } | undefined {
  const pairs = (invocation.values.get(flag) ?? []).map((pair) => {
    const [name, value] = splitOnce(pair, "=");
    if (value !== undefined && name !== "") return [name, value] as const;
    throw usageError(`"--${flag}" doesn't know "${pair}"`, `write --${flag} NAME=VALUE`);
  });
  const names = pairs.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) {
    throw usageError(`"--${flag} ${twice}=…" is given twice`, "give it once");
  }
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

function badBudget(pair: string, word: string) {
  const close = nearest(word, BUDGET_KEYS);
  const known = `write --budget KEY=VALUE with one of the keys ${BUDGET_KEYS.join(", ")}`;
  return usageError(
    `"--budget" doesn't know "${pair}"`,
    close === undefined || close === word ? known : `did you mean ${close}=…? ${known}`,
  );
}

function splitOnce(text: string, by: string): [string, string | undefined] {
  const at = text.indexOf(by);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + by.length)];
}

/** `--on-unknown`. */
export function onUnknownOf(invocation: Invocation): OnUnknown | undefined {
  const text = valueOf(invocation, "on-unknown");
  if (text === undefined) return undefined;
  const known = ON_UNKNOWN.find((each) => each === text);
  if (known !== undefined) return known;
  throw usageError(`"--on-unknown" doesn't know "${text}"`, `one of: ${ON_UNKNOWN.join(", ")}`);
}

const UNKNOWN_RULE =
  /^(?:(?:(?<run>[^/:=]+)\/)?(?<call>[^/:=]+):)?(?<how>retry|skip|fail|done)(?:=(?<result>[^]*))?$/;
const UNKNOWN_FORM = "write [[RUN/]CALL:]retry, done, done=JSON, skip or fail";

/** `[[RUN/]CALL:]retry|done[=JSON]|skip|fail`. */
export function parseUnknownRule(text: string): UnknownRule {
  const { run, call, how, result } = UNKNOWN_RULE.exec(text)?.groups ?? {};
  if (how === undefined || result !== undefined && how !== "done") {
    throw usageError(`"--unknown" doesn't know "${text}"`, UNKNOWN_FORM);
  }
  return {
    ...(run === undefined ? {} : { run }),
    ...(call === undefined ? {} : { call }),
    decision: decisionOf(how, result),
  };
}

/** A decision in words, or undefined where it is none. Throws a usage error where the result isn't JSON. */
function decisionOf(how: string, result: string | undefined): UnknownDecision {
  if (how === "retry" || how === "skip" || how === "fail") return { how };
  return result === undefined ? { how: "done" } : { how: "done", result: jsonResult(result) };
}

/** The result that a person gives for a call. */
export function jsonResult(text: string): Json {
  let result: Json;
  try {
    result = JSON.parse(text);
  } catch {
    throw usageError(
      `The result in "done=${text}" is not JSON`,
      `quote text as in done='"text"'`,
    );
  }
  return exactly(result, text);
}

/** Of a number that is too large, digits. */
const NUMBER_CHARS_SHOWN = 40;

/** The value that a text was read as. Throws a usage error where a number in it would be sent as another one. */
export function exactly<T extends Json>(value: T, text: string): T {
  const number = nestsDeeper(value) ? undefined : alteredNumber(text);
  if (number === undefined) return value;
  throw usageError(
    `The number ${number.slice(0, NUMBER_CHARS_SHOWN)} can't be kept exactly`,
    "give it as text, in quotes, if that will do",
  );
}
