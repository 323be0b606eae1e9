import assert from "node:assert/strict";
import { EFFECT_CLASSES, ON_UNKNOWN } from "../base/effect.ts";
import { isRepeatable, SENDS_MAX, settleUnknown } from "./settle.ts";

Deno.test("only read and idempotent calls may be repeated unasked", () => {
  assert.deepEqual(EFFECT_CLASSES.filter(isRepeatable), ["read", "idempotent"]);
});

Deno.test("every combination of class and on_unknown has its verdict, before and after the last send", () => {
  const verdicts: { [row: string]: [first: string, spent: string] } = {};
  for (const effect of EFFECT_CLASSES) {
    for (const onUnknown of ON_UNKNOWN) {
      verdicts[`${effect} ${onUnknown}`] = [
        settleUnknown({ effect, onUnknown, sends: SENDS_MAX - 1 }),
        settleUnknown({ effect, onUnknown, sends: SENDS_MAX }),
      ];
    }
  }
  const repeatable = { ask: ["retry", "gave-up"], retry: ["retry", "gave-up"] };
  for (const effect of ["read", "idempotent"]) {
    for (const onUnknown of ON_UNKNOWN) {
      assert.deepEqual(verdicts[`${effect} ${onUnknown}`], repeatable.ask);
    }
  }
  for (const effect of ["write", "destructive"]) {
    assert.deepEqual(verdicts[`${effect} ask`], ["ask", "ask"]);
    assert.deepEqual(verdicts[`${effect} retry`], ["retry", "ask"]);
    assert.deepEqual(verdicts[`${effect} skip`], ["skip", "skip"]);
    assert.deepEqual(verdicts[`${effect} fail`], ["fail", "fail"]);
  }
});
