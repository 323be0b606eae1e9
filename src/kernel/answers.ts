/** Results that the kernel itself gives: errors, unknown outcomes, and the short preview shown to the user. */
import type { SysError } from "../base/errors.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import type { Redactor } from "../base/redaction.ts";
import type { CallAnswer, ErrorRecord } from "../journal/entry.ts";

/** Stands for arguments and results of sensitive tools wherever they are shown. */
export const MASKED = "[masked]";

const PREVIEW_CHARS_MAX = 200;

export function errorRecord(error: SysError): ErrorRecord {
  return {
    code: error.code,
    message: error.message,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
  };
}

/** A known error as a result for the model. */
export function errorAnswer(error: SysError): CallAnswer {
  return textAnswer("error", `[${error.code}] ${error.message}`);
}

export function textAnswer(outcome: "ok" | "error", text: string): CallAnswer {
  return { outcome, content: [{ type: "text", text }] };
}

/** What the model is told of a call whose outcome stays unknown. */
export function unknownAnswer(tool: string): CallAnswer {
  return textAnswer(
    "error",
    `[UNKNOWN_OUTCOME] The connection to "${tool}" was lost after the call had been sent: it may or may not have taken effect. Check before you repeat it.`,
  );
}

/** Begin of a result's text in one line. Redacted before it is cut: half a secret would be found by nobody. */
export function preview(answer: CallAnswer, redactor: Redactor | undefined): string {
  const whole = answer.content.map(blockText).filter((part) => part !== "").join(" ");
  const text = (redactor?.redact(whole) ?? whole).replaceAll(/\s+/g, " ").trim();
  const points = Array.from(text.slice(0, 2 * PREVIEW_CHARS_MAX));
  return points.length <= PREVIEW_CHARS_MAX
    ? points.join("")
    : `${points.slice(0, PREVIEW_CHARS_MAX).join("")}…`;
}

function blockText(block: Json): string {
  if (!isJsonObject(block)) return "";
  if (block["type"] === "text") return typeof block["text"] === "string" ? block["text"] : "";
  return typeof block["type"] === "string" ? `[${block["type"]}]` : "";
}
