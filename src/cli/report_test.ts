import assert from "node:assert/strict";
import { report } from "../../tests/doubles/fake_system.ts";
import type { UnknownCall } from "../base/operations.ts";
import { nextSteps } from "./report.ts";

function unknown(count: number): UnknownCall[] {
  return Array.from({ length: count }, (_, index) => ({
    run_id: report().run_id,
    call: `t${index + 1}.1`,
    tool: "pay",
    effect: "write",
    cause: "crash",
    attempt: 1,
  }));
}

/** The command that is said to go on. */
function goOn(count: number): string | undefined {
  const reason = "unknown-outcome";
  const calls = unknown(count);
  return nextSteps(report({ state: "suspended", reason, exit_code: 5, unknown_calls: calls })).at(
    -1,
  );
}

Deno.test("a few calls are named each with the flag that decides it, many by one for all", () => {
  assert.equal(
    goOn(2),
    "to go on: rnix resume 0f3a9c2e --unknown=t1.1:DECISION --unknown=t2.1:DECISION  # DECISION: retry, done, skip or fail",
  );
  assert.equal(
    goOn(6),
    "to go on: rnix resume 0f3a9c2e --unknown=DECISION  # for all of them, --unknown=CALL:DECISION for one; DECISION: retry, done, skip or fail",
  );
});
