/** The SDK's words for an answer that doesn't fit the protocol are a dump of its validator; here they become a sentence. */
import { isJsonObject, type Json } from "../base/json.ts";

const DUMP = /^Invalid result for (\S+): (\[.*\])$/s;
const PROBLEMS_MAX = 4;

/** A message without a dump: `its answer to initialize doesn't fit the protocol: protocolVersion: expected string, received undefined`. Any other is given back as it is. */
export function plainMessage(message: string): string {
  const [, method, dump] = DUMP.exec(message) ?? [];
  if (method === undefined || dump === undefined) return message;
  return `its answer to ${method} doesn't fit the protocol${problemsOf(dump)}`;
}

function problemsOf(dump: string): string {
  try {
    const issues: Json = JSON.parse(dump);
    const problems = (Array.isArray(issues) ? issues : []).map(problemOf);
    const more = problems.length - PROBLEMS_MAX;
    const shown = problems.slice(0, PROBLEMS_MAX).join("; ");
    return problems.length === 0 ? "" : `: ${shown}${more > 0 ? `; and ${more} more` : ""}`;
  } catch {
    return "";
  }
}

function problemOf(issue: Json): string {
  const { path, message } = isJsonObject(issue) ? issue : {};
  const place = Array.isArray(path) && path.length > 0 ? path.join(".") : "all of it";
  const what = typeof message === "string" ? message : "is invalid";
  return `${place}: ${what.replace(/^Invalid input: /, "")}`;
}
