import assert from "node:assert/strict";
import { formatError } from "../base/errors.ts";
import { formatProblem, Problems, problemsOf } from "./problems.ts";

Deno.test("problems are told in the order of the file, however they were found", () => {
  const problems = new Problems();
  problems.add("b.yaml", { line: 1, column: 1 }, "other file");
  problems.add("a.yaml", { line: 10, column: 1 }, "last");
  problems.add("a.yaml", { line: 2, column: 9 }, "second");
  problems.add("a.yaml", { line: 2, column: 3 }, "first");
  assert.deepEqual(problems.list.map(formatProblem), [
    "a.yaml:2:3: first",
    "a.yaml:2:9: second",
    "a.yaml:10:1: last",
    "b.yaml:1:1: other file",
  ]);
  assert.equal(problems.count, 4);
});

Deno.test("one problem is one line, several are counted and listed", () => {
  const problems = new Problems();
  problems.add("a", { line: 1, column: 2 }, "Wrong");
  assert.equal(formatError(problems.toError()), "[INVALID] a:1:2: Wrong");
  problems.add("a", { line: 2, column: 2 }, "Wrong too");
  const error = problems.toError();
  assert.equal(formatError(error), "[INVALID] 2 mistakes\n  a:1:2: Wrong\n  a:2:2: Wrong too");
  assert.equal(error.exitCode, 2);
  assert.deepEqual(problemsOf(error), problems.list);
});

Deno.test("what is over the limit is counted, and its place not even looked for", () => {
  const problems = new Problems();
  let searches = 0;
  for (let line = 1; line <= 103; line += 1) {
    const position = () => {
      searches += 1;
      return { line, column: 1 };
    };
    problems.add("a", position, "Wrong");
  }
  assert.equal(searches, 100);
  const lines = problems.toError().message.split("\n");
  assert.deepEqual([lines[0], lines.at(-1), lines.length], ["103 mistakes", "  and 3 more", 102]);
});
