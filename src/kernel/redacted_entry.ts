/**
 * The one place where secrets are taken out of what the kernel itself puts into a journal: errors and what is told of servers.
 *
 * A program's and a model's own words pass as they are, and a result was redacted at its intake; so everything under the names below, wherever it stands in an entry, and the whole of a result that was made of an error.
 */
import type { Redactor } from "../base/redaction.ts";
import type { EntryBody } from "../journal/entry.ts";

const TOLD: ReadonlySet<string> = new Set([
  ...["error", "fallback_for", "warnings", "server_info", "set_aside"],
]);

/** The same entry without secrets in what it tells. An entry that tells nothing is given back as it is. */
export function redactEntry(body: EntryBody, redactor: Redactor): EntryBody {
  if (redactor.isEmpty) return body;
  if (body.type === "call.settled" && body.answer?.warnings !== undefined) {
    return { ...body, answer: withRedacted(body.answer, TOLD, redactor) };
  }
  // What a person writes is kept for the record alone; a result with an error is that error's text.
  if (body.type === "access.intent") return withRedacted(body, new Set(["input"]), redactor);
  const isResult = body.type === "call.result" || body.type === "access.result";
  const names = isResult && body.error !== undefined ? new Set([...TOLD, "content"]) : TOLD;
  return withRedacted(body, names, redactor);
}

function withRedacted<T extends object>(
  value: T,
  names: ReadonlySet<string>,
  redactor: Redactor,
): T {
  const found = Object.entries(value).filter(([name]) => names.has(name));
  if (found.length === 0) return value;
  return {
    ...value,
    ...Object.fromEntries(found.map(([name, told]) => [name, redactor.redactJson(told)])),
  };
}
