/** Results that the kernel itself gives: errors, unknown outcomes, and the short preview shown to the user. */
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import type { Redactor } from "../base/redaction.ts";
import type { CallAnswer, ErrorRecord, UnknownCause } from "../journal/entry.ts";

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

/** What became of a call, for its model. */
const STORIES: { readonly [cause in UnknownCause]: (tool: string) => string } = {
  timeout: (tool) => `"${tool}" gave no answer in time after the call had been sent`,
  disconnected: (tool) => `The connection to "${tool}" was lost after the call had been sent`,
  cancelled: (tool) => `The call of "${tool}" was cancelled after it had been sent`,
  crash: (tool) => `rnix itself was ended while the call of "${tool}" was on its way`,
  cut: (tool) => `The record of what became of the call of "${tool}" was lost`,
};

/** What is known of a call whose outcome isn't. */
export interface UnknownFacts {
  tool: string;
  cause?: UnknownCause;
  error?: ErrorRecord;
}

/** What the model is told of a call whose outcome stays unknown: made of what the journal holds, so that it is the same whenever it is made. */
export function unknownAnswer({ tool, cause = "crash", error }: UnknownFacts): CallAnswer {
  const told = error === undefined ? "" : ` (${error.message})`;
  return textAnswer(
    "error",
    `[UNKNOWN_OUTCOME] ${
      STORIES[cause](tool)
    }${told}: it may or may not have taken effect. Check before you repeat it.`,
  );
}

/** What a call that could be repeated comes to after its last repeat: the last failure, as a known one. */
export function gaveUpAnswer({ tool, cause, error }: UnknownFacts): CallAnswer {
  const told = error === undefined ? "" : `: ${error.message}`;
  return errorAnswer(
    cause === "timeout"
      ? new SysError("TIMEOUT", `"${tool}" gave no answer in time, repeats included${told}`)
      : new SysError(
        "DEVICE_DISCONNECTED",
        `"${tool}" lost its connection, repeats included${told}`,
      ),
  );
}

/** What a person reads of an answer: its text, or the JSON of what isn't text alone. */
export function answerText({ content, structured }: CallAnswer): string {
  const texts = content.map((block) =>
    isJsonObject(block) && block["type"] === "text" && typeof block["text"] === "string"
      ? block["text"]
      : undefined
  );
  if (texts.length > 0 && texts.every((text) => text !== undefined)) return texts.join("\n");
  if (texts.length === 0) return structured === undefined ? "(empty)" : JSON.stringify(structured);
  return JSON.stringify({ content, ...(structured === undefined ? {} : { structured }) });
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
