import assert from "node:assert/strict";
import { checkRules, ruleFor, ruleText, type SettleRule } from "./settle_rules.ts";

const UNKNOWN = [{ call: "t1.1", tool: "pay" }, { call: "t2.3", tool: "post" }];
const skip = { how: "skip" } as const;

function refused(rules: SettleRule[], unknown = UNKNOWN): { message: string; hint: string } {
  try {
    checkRules(rules, unknown, "run");
  } catch (thrown) {
    assert.ok(thrown instanceof Error && "code" in thrown && "hint" in thrown);
    assert.equal(thrown.code, "INVALID");
    assert.equal("exitCode" in thrown && thrown.exitCode, 2);
    return { message: thrown.message, hint: String(thrown.hint) };
  }
  return { message: "", hint: "" };
}

Deno.test("a rule that fits no unknown call is refused, named as it was written, and the unknown calls are listed", () => {
  for (
    const [rule, text] of [
      [{ call: "T1.1", decision: { how: "done" } }, "T1.1:done"],
      [{ call: "t01.1", decision: skip }, "t01.1:skip"],
      [{ call: " t1.1", decision: skip }, " t1.1:skip"],
      [{ call: "t1.9", decision: { how: "fail" } }, "t1.9:fail"],
      [{ run: "ffff", isElsewhere: true, call: "t1.1", decision: skip }, "ffff/t1.1:skip"],
      [{ call: "t9.9", decision: { how: "done", result: { a: 1 } } }, 't9.9:done={"a":1}'],
    ] as const
  ) {
    const { message, hint } = refused([{ call: "t2.3", decision: skip }, rule]);
    assert.equal(message, `"--unknown=${text}" fits no call whose outcome is unknown`);
    assert.match(hint, /t1\.1 \(pay\), t2\.3 \(post\)/);
    assert.match(hint, /nothing was settled or sent/);
  }
});

Deno.test("a rule for all calls needs at least one", () => {
  assert.match(refused([{ decision: skip }], []).hint, /No call of this run/);
  assert.equal(refused([{ decision: skip }]).message, "");
});

Deno.test("two rules that say different things of one call are refused; the same twice is not", () => {
  const done = { call: "t1.1", decision: { how: "done" } } as const;
  assert.match(
    refused([done, { call: "t1.1", decision: skip }]).message,
    /^"--unknown=t1\.1:done" and "--unknown=t1\.1:skip" contradict each other$/,
  );
  assert.match(
    refused([done, { call: "t1.1", decision: { how: "done", result: 1 } }]).message,
    /contradict/,
  );
  assert.match(
    refused([{ decision: skip }, { decision: { how: "retry" } }]).message,
    /contradict/,
  );
  assert.equal(refused([done, { ...done }]).message, "");
  assert.equal(refused([done, { run: "1", ...done }]).message, "");
});

Deno.test("the rule that names a call goes before the one for all, in any order", () => {
  const rules: SettleRule[] = [{ decision: skip }, { call: "t1.1", decision: { how: "fail" } }];
  assert.equal(refused(rules).message, "");
  for (const order of [rules, rules.toReversed()]) {
    assert.deepEqual(ruleFor(order, "t1.1"), { how: "fail" });
    assert.deepEqual(ruleFor(order, "t2.3"), skip);
  }
  assert.equal(ruleText({ decision: skip }), "skip");
});
