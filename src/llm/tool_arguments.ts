/** The text that a provider gives as a call's arguments, as a value. */
import { alteredNumber, type Json, nestsDeeper } from "../base/json.ts";

/**
 * Nothing, blank and `null` mean no arguments: `{}`. Text that isn't JSON, is nested too deep, or has a number that would be sent as another one (the id of another record), is kept as `malformed`, so that the model can be told.
 * JSON other than an object is given as it is: the tool's schema judges it.
 */
export function readArguments(
  text: string | null | undefined,
): { input: Json; malformed?: string } {
  if (text === null || text === undefined || text.trim() === "") return { input: {} };
  try {
    const input: Json = JSON.parse(text);
    const isUnfit = nestsDeeper(input) || alteredNumber(text) !== undefined;
    return isUnfit ? { input: null, malformed: text } : { input: input ?? {} };
  } catch {
    return { input: null, malformed: text };
  }
}
