import assert from "node:assert/strict";
import { patternSteps } from "./pattern_steps.ts";

Deno.test("patterns as they are usual are cheap", () => {
  for (
    const pattern of [
      "^[a-z0-9-]+$",
      "^\\d{4}-\\d{2}-\\d{2}$",
      "^(https?://)?[\\w.-]+$",
      "^(open|closed)$",
      "^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$",
      "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    ]
  ) assert.ok(patternSteps(pattern, 60) <= 1e6, pattern);
});

Deno.test("patterns that may search for ages are known by their form", () => {
  for (
    const pattern of [
      "^(a+)+$",
      "^(a|a)*$",
      "^((a?))*$",
      "(?:(?:x*)y?){2,}",
      "^([a-z]+-)*[a-z]+$",
      "(a)\\1*",
      `${"a?".repeat(40)}${"a".repeat(40)}`,
      "a*".repeat(8),
      "(a|b|ab)".repeat(30),
    ]
  ) assert.ok(patternSteps(pattern, 60) > 1e9, pattern);
});

Deno.test("what stands in a class or behind a backslash is no operator", () => {
  assert.equal(patternSteps("^[(+*|)]\\(\\+\\|[\\]+]$", 50), 1);
});
