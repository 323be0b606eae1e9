import assert from "node:assert/strict";
import { expandTemplate, isVariableName, parseTemplate } from "./template.ts";

const ENV = { HOME: "/home/u", TOKEN: "s3cret-value", EMPTY: "", DOLLAR: "${HOME}" };

Deno.test("[D15] every spelling of a variable has one meaning: a value, a dollar, or a mistake", () => {
  const good: [string, string][] = [
    ["plain", "plain"],
    ["", ""],
    ["${HOME}", "/home/u"],
    ["a${HOME}b${TOKEN}c", "a/home/ubs3cret-valuec"],
    ["${EMPTY}", ""],
    ["${EMPTY:-x}", "x"],
    ["${UNSET:-x y}", "x y"],
    ["${UNSET:-}", ""],
    ["${UNSET:-a:-b}", "a:-b"],
    ["${UNSET:-$$}", "$$"],
    ["${HOME:-x}", "/home/u"],
    ["${DOLLAR}", "${HOME}"],
    ["$$", "$"],
    ["$${HOME}", "${HOME}"],
    ["$$$${HOME}", "$${HOME}"],
    ["$$HOME", "$HOME"],
    ["^x$", "^x$"],
    ["$1 $(date) $ 5", "$1 $(date) $ 5"],
    ["{HOME}", "{HOME}"],
  ];
  for (const [text, expected] of good) {
    assert.deepEqual(parseTemplate(text).faults, [], text);
    const { text: expanded, missing } = expandTemplate(text, ENV);
    assert.deepEqual({ expanded, missing }, { expanded, missing: [] }, text);
    assert.equal(expanded, expected, text);
  }
  const bad: [string, RegExp][] = [
    ["$HOME", /"\$HOME" is not a variable here; write "\$\{HOME\}", or "\$\$HOME"/],
    ["${env:HOME}", /"\$\{env:HOME\}" is not understood/],
    ["${HOME", /without its "\}"/],
    ["${}", /"\$\{\}" is not understood/],
    ["${HOME-x}", /not understood/],
    ["${HOME:=x}", /not understood/],
    ["${1}", /not understood/],
    ["${A B}", /not understood/],
    ["${A:-${B}}", /The default of "\$\{A\}" can't hold another variable/],
  ];
  for (const [text, fault] of bad) assert.match(parseTemplate(text).faults.join(), fault, text);
});

Deno.test("all faults of one text are told", () => {
  assert.equal(parseTemplate("$A ${b:c} ${d").faults.length, 3);
});

Deno.test("missing variables are named once, those that were used with their values", () => {
  const expansion = expandTemplate("${A}${B}${A}${TOKEN}${C:-c}", ENV);
  assert.deepEqual(expansion.missing, ["A", "B"]);
  assert.deepEqual(expansion.used, [{ name: "TOKEN", value: "s3cret-value" }]);
});

Deno.test("a name of the prototype is no variable of the environment", () => {
  assert.deepEqual(expandTemplate("${constructor}${__proto__}", {}).missing, [
    "constructor",
    "__proto__",
  ]);
});

Deno.test("variable names are what a shell takes for one", () => {
  for (const name of ["A", "_a1", "LC_ALL"]) assert.ok(isVariableName(name), name);
  for (const name of ["", "1A", "A-B", "A B", "A=B", "é"]) assert.ok(!isVariableName(name), name);
});
