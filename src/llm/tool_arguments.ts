/** The text that a provider gives as a call's arguments, as a value. */
import { type Json, nestsDeeper } from "../base/json.ts";

/**
 * Nothing, blank and `null` mean no arguments: `{}`. Text that isn't JSON, or is nested too deep, is kept as `malformed`, so that the model can be told.
 * JSON other than an object is given as it is: the tool's schema judges it.
 */
export function readArguments(
  text: string | null | undefined,
): { input: Json; malformed?: string } {
  if (text === null || text === undefined || text.trim() === "") return { input: {} };
  try {
    const input: Json = JSON.parse(text);
    return nestsDeeper(input) ? { input: null, malformed: text } : { input: input ?? {} };
  } catch {
    return { input: null, malformed: text };
  }
}
