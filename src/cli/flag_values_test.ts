import assert from "node:assert/strict";
import type { Budget } from "../base/budget.ts";
import { SysError } from "../base/errors.ts";
import { parseArguments } from "./arguments.ts";
import {
  budgetOf,
  namedValuesOf,
  onUnknownOf,
  parseUnknownRule,
  wholeNumber,
} from "./flag_values.ts";
import { allCommands } from "./commands.ts";

const ALL_COMMANDS = await allCommands();

function budget(...flags: string[]): Budget | undefined {
  return budgetOf(parseArguments(["run", "x", ...flags], ALL_COMMANDS).invocation);
}

function refused(work: () => unknown): string {
  try {
    work();
  } catch (thrown) {
    assert.ok(thrown instanceof SysError);
    assert.equal(thrown.exitCode, 2);
    return `${thrown.message}: ${thrown.hint}`;
  }
  assert.fail("accepted");
}

Deno.test("limits come from --budget, --max-turns and --timeout", () => {
  assert.equal(budget(), undefined);
  assert.deepEqual(
    budget("--budget", "tokens=2000", "--budget=tool_calls=7", "--max-turns=3", "--timeout=1m30s"),
    { tokens: 2000, tool_calls: 7, turns: 3, duration_ms: 90_000 },
  );
  assert.deepEqual(budget("--budget", "turns=1", "--budget", "duration=500ms"), {
    turns: 1,
    duration_ms: 500,
  });
});

Deno.test("a limit that makes no sense is refused with what would", () => {
  assert.equal(
    refused(() => budget("--budget", "token=5")),
    '"--budget" doesn\'t know "token=5": did you mean tokens=…? write --budget KEY=VALUE with one of the keys turns, tokens, tool_calls, duration, cost_usd',
  );
  assert.match(refused(() => budget("--budget", "turns")), /^"--budget" doesn't know "turns"/);
  assert.deepEqual(budget("--budget", "cost_usd=0.5"), { cost_usd: 0.5 });
  for (const text of ["0", "-1", "$2", "1e3", "."]) {
    assert.match(refused(() => budget("--budget", `cost_usd=${text}`)), /amount in dollars/, text);
  }
  for (const text of ["0", "-1", "1.5", "ten", "", "1e3", "99999999999999999999"]) {
    assert.match(refused(() => budget(`--max-turns=${text}`)), /must be a whole number/, text);
  }
  for (const text of ["10", "0s", "-1s", "soon", ""]) {
    assert.match(refused(() => budget(`--timeout=${text}`)), /must be a duration/, text);
  }
});

Deno.test("two ways to set one limit exclude each other", () => {
  assert.equal(
    refused(() => budget("--budget", "turns=3", "--max-turns", "4")),
    '"--max-turns" and "--budget turns" set the same limit: give one of them',
  );
  assert.match(refused(() => budget("--timeout=1s", "--budget=duration=2s")), /same limit/);
});

Deno.test("rules for unknown outcomes name all calls, a call, or a call of a run", () => {
  assert.deepEqual(parseUnknownRule("retry"), { decision: { how: "retry" } });
  assert.deepEqual(parseUnknownRule("t3.0:skip"), { call: "t3.0", decision: { how: "skip" } });
  assert.deepEqual(parseUnknownRule("0f3a9c2e/t3.0:fail"), {
    run: "0f3a9c2e",
    call: "t3.0",
    decision: { how: "fail" },
  });
  assert.deepEqual(parseUnknownRule("n.fetch.2:done"), {
    call: "n.fetch.2",
    decision: { how: "done" },
  });
});

Deno.test("a done call may get its result, whatever characters are in it", () => {
  assert.deepEqual(parseUnknownRule('t1.0:done={"url":"http://a/b:c=d","n":[1]}'), {
    call: "t1.0",
    decision: { how: "done", result: { url: "http://a/b:c=d", n: [1] } },
  });
  assert.deepEqual(parseUnknownRule('done="two\\nlines"'), {
    decision: { how: "done", result: "two\nlines" },
  });
  assert.deepEqual(parseUnknownRule("done=null"), { decision: { how: "done", result: null } });
  assert.equal(
    refused(() => parseUnknownRule("t1.0:done=yes")),
    `The result in "done=yes" is not JSON: quote text as in done='"text"'`,
  );
});

Deno.test("other rules for unknown outcomes are refused", () => {
  const wrong = ["", "again", "t1.0", "t1.0:", "run/retry", "a/b/c:retry", "retry=1", ":retry"];
  for (const text of wrong) {
    assert.match(refused(() => parseUnknownRule(text)), /^"--unknown" doesn't know/, text);
  }
});

Deno.test("--on-unknown takes its four words", () => {
  const given = (text: string) =>
    onUnknownOf(parseArguments(["resume", "1", `--on-unknown=${text}`], ALL_COMMANDS).invocation);
  for (const word of ["ask", "retry", "skip", "fail"]) assert.equal(given(word), word);
  assert.match(refused(() => given("done")), /one of: ask, retry, skip, fail/);
});

Deno.test("a whole number respects its minimum", () => {
  assert.equal(wholeNumber("--from-step", "0", 0), 0);
  assert.match(
    refused(() => wholeNumber("--from-step", "0", 1)),
    /a whole number from 1 upwards, but is "0": e\.g\. 10$/,
  );
});

Deno.test("--set gives parameters by name, each once; a value may hold anything", () => {
  const of = (...args: string[]) =>
    namedValuesOf(parseArguments(["run", "x", ...args], ALL_COMMANDS).invocation, "set");
  assert.equal(of(), undefined);
  assert.deepEqual(of("--set", "a=1", "--set", "b=x=y z", "--set", "c="), {
    a: "1",
    b: "x=y z",
    c: "",
  });
  assert.throws(() => of("--set", "a"), /"--set" doesn't know "a"/);
  assert.throws(() => of("--set", "a=1", "--set", "a=2"), /given twice/);
});
