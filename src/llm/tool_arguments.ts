/** The text that a provider gives as a call's arguments, as a value. */
import type { Json } from "../base/json.ts";

/**
 * Nothing, blank and `null` mean no arguments: `{}`. Text that isn't JSON is kept as `malformed`, so that the model can be told.
 * JSON other than an object is given as it is: the tool's schema judges it.
 */
export function readArguments(
  text: string | null | undefined,
): { input: Json; malformed?: string } {
  if (text === null || text === undefined || text.trim() === "") return { input: {} };
  try {
    const input: Json = JSON.parse(text);
    return { input: input ?? {} };
  } catch {
    return { input: null, malformed: text };
  }
}
