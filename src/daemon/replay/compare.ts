/** Two runs held against each other: the calls that each made, what these came to, and how each ended. */
import { canonicalJson } from "../../base/json.ts";
import type { ReplayDifference } from "../../base/operations.ts";
import type { RecordedCall, Recording } from "./recording.ts";

/** What is not in `again` as it was in `before`. The words of an answer differ from time to time; so with a live model only calls and the kind of end count. */
export function compareRuns(
  before: Recording,
  again: Recording,
  live: "model" | "mcp",
): ReplayDifference[] {
  return [...compareCalls(before, again, live), ...compareEnds(before, again, live)];
}

function compareCalls(
  before: Recording,
  again: Recording,
  live: "model" | "mcp",
): ReplayDifference[] {
  const left = [...again.calls];
  const differences: ReplayDifference[] = [];
  for (const made of before.calls) {
    const at = left.findIndex((one) => isSameCall(made, one));
    const [same] = at < 0 ? [] : left.splice(at, 1);
    if (same === undefined) {
      differences.push(difference("call", `call ${made.call} of ${made.tool} is not made now`));
    } else if (live === "mcp" && !isSameAnswer(made, same)) {
      const told = `call ${made.call} of ${made.tool} is answered otherwise now`;
      differences.push(difference("call", `${told} (call ${same.call})`));
    }
  }
  return [
    ...differences,
    ...left.map(({ call, tool }) =>
      difference("call", `call ${call} of ${tool} is made now and wasn't`)
    ),
  ];
}

function compareEnds(
  before: Recording,
  again: Recording,
  live: "model" | "mcp",
): ReplayDifference[] {
  const [was, is] = [before.exit?.status ?? "suspended", again.exit?.status ?? "suspended"];
  if (was !== is) return [difference("end", `it was ${was} and is ${is} now`)];
  const isOther = before.exit?.result !== again.exit?.result;
  return live === "mcp" && isOther ? [difference("end", "its result is another one now")] : [];
}

function isSameCall(one: RecordedCall, other: RecordedCall): boolean {
  return one.tool === other.tool && one.inputSha256 === other.inputSha256;
}

function isSameAnswer({ answer: one }: RecordedCall, { answer: other }: RecordedCall): boolean {
  if (one === undefined || other === undefined) return one === other;
  const text = ({ outcome, content, structured = null }: typeof one) =>
    canonicalJson({ outcome, content, structured });
  return text(one) === text(other);
}

function difference(what: ReplayDifference["what"], message: string): ReplayDifference {
  return { what, message };
}
