import assert from "node:assert/strict";
import { parseTemplate } from "../template.ts";
import { convertText, variableOfInput, type VariableStyle } from "./variables.ts";

const STYLES: readonly VariableStyle[] = ["none", "plain", "editor", "plain and editor"];

Deno.test("[D15] whatever stands in a text, it becomes a template without faults", () => {
  const pieces = ["$", "{", "}", "A", "env:", ":-", "input:x", "${", "$$", " ", "${A}", "-", "\n"];
  let seed = 7;
  const next = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648);
  for (let round = 0; round < 3_000; round += 1) {
    const length = 1 + next() % 7;
    const text = Array.from({ length }, () => pieces[next() % pieces.length]).join("");
    for (const style of STYLES) {
      assert.deepEqual(
        parseTemplate(convertText(text, style).text).faults,
        [],
        `${style}: ${text}`,
      );
    }
  }
});

Deno.test("a text that a program takes as it is means itself", () => {
  for (const text of ["$$", "$HOME", "${HOME}", "a$", "$5", "${", "$${A}", "x${env:A}y"]) {
    const { parts } = parseTemplate(convertText(text, "none").text);
    assert.equal(parts.join(""), text, text);
  }
});

Deno.test("an input's variable has a name that an environment can hold", () => {
  assert.deepEqual(
    ["github-token", "1st", "--", "API Key"].map(variableOfInput),
    ["GITHUB_TOKEN", "INPUT_1ST", "INPUT_", "API_KEY"],
  );
});
