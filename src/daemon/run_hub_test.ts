import assert from "node:assert/strict";
import type { RunEvent, UnknownCall, UnknownDecision } from "../base/operations.ts";
import { RunHub } from "./run_hub.ts";

const CALL: UnknownCall = {
  run_id: "r",
  call: "t1.1",
  tool: "pay",
  effect: "write",
  cause: "timeout",
  attempt: 1,
};
const EVENT: RunEvent = { type: "notice", pid: 1, ts: 0, message: "hello" };
const never = new AbortController().signal;

/** Answers when told to; keeps the signal that it was given. */
function person() {
  const answer = Promise.withResolvers<UnknownDecision | undefined>();
  let signal = never;
  return {
    answer: answer.resolve,
    signal: () => signal,
    onEvent: () => {},
    decideUnknown: (_: UnknownCall, given: AbortSignal) => {
      signal = given;
      return answer.promise;
    },
  };
}

Deno.test("every follower hears every event, also beside one that fails", () => {
  const heard: string[] = [];
  const hub = new RunHub({ onEvent: () => heard.push("first") });
  hub.add({
    onEvent: () => {
      throw new Error("broken pipe");
    },
  });
  const leave = hub.add({ onEvent: () => heard.push("third") });
  hub.onEvent(EVENT);
  leave();
  hub.onEvent(EVENT);
  assert.deepEqual(heard, ["first", "third", "first"]);
  assert.equal(hub.followers, 2);
});

Deno.test("of several people the first decision holds, and the others are no longer asked", async () => {
  const [slow, quick] = [person(), person()];
  const hub = new RunHub(slow);
  hub.add(quick);
  const decision = hub.decideUnknown(CALL, never);
  quick.answer({ how: "skip" });
  assert.deepEqual(await decision, { how: "skip" });
  assert.ok(slow.signal().aborted);
});

Deno.test("one who doesn't decide leaves it to the others; nobody left is no decision", async () => {
  const [first, second] = [person(), person()];
  const hub = new RunHub(first);
  hub.add(second);
  const decision = hub.decideUnknown(CALL, never);
  first.answer(undefined);
  second.answer({ how: "retry" });
  assert.deepEqual(await decision, { how: "retry" });
  assert.equal(await new RunHub({ onEvent: () => {} }).decideUnknown(CALL, never), undefined);
});

Deno.test("a question that is withdrawn is withdrawn for all who were asked", async () => {
  const one = person();
  const hub = new RunHub(one);
  const abort = new AbortController();
  const decision = hub.decideUnknown(CALL, abort.signal);
  abort.abort();
  assert.ok(one.signal().aborted);
  one.answer(undefined);
  assert.equal(await decision, undefined);
});

Deno.test("trust is given by any follower, and by none where nobody can be asked", async () => {
  const question = { subject: "a", files: [] };
  const hub = new RunHub({ onEvent: () => {} });
  assert.equal(await hub.confirmTrust(question), false);
  hub.add({ onEvent: () => {}, confirmTrust: () => Promise.resolve(true) });
  assert.equal(await hub.confirmTrust(question), true);
});
