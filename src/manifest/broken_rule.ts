/** A rule between keys that a file breaks, and the rules that several parts of a file share. */
import { parseDuration } from "../base/duration.ts";
import { nearest } from "../base/nearest.ts";
import type { KeyPath } from "./problems.ts";

/** A broken rule; `at` says whether the key or its value is to blame. */
export interface BrokenRule {
  path: KeyPath;
  at: "key" | "value";
  message: string;
}

/** Whether a key that isn't there was meant by one that is. */
export function isMisspelt(mapping: Record<string, unknown>, key: string): boolean {
  return Object.keys(mapping).some((given) => given !== key && nearest(given, [key]) !== undefined);
}

/** `timeout` is one silence, `max_timeout` the whole: never the shorter one. */
export function timeoutRule(path: KeyPath, mapping: Record<string, unknown>): BrokenRule[] {
  const { timeout, max_timeout } = mapping;
  if (typeof timeout !== "string" || typeof max_timeout !== "string") return [];
  const shorter = parseDuration(timeout);
  const longer = parseDuration(max_timeout);
  if (shorter === undefined || longer === undefined || shorter <= longer) return [];
  const message = `"timeout" (${timeout}, one silence) is longer than "max_timeout" ` +
    `(${max_timeout}, in all)`;
  return [{ path: [...path, "timeout"], at: "value", message }];
}
