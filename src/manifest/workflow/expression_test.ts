import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import { evaluate, EvaluationError, fillIn, TEXT_CHARS_MAX } from "./evaluate.ts";
import { EXPRESSION_CHARS_MAX, parseExpression } from "./expression.ts";
import { parseLone, parseText } from "./expression_text.ts";

const SCOPE = {
  nodes: {
    a: { result: "text", output: { list: [1, { "my key": "x" }], ok: true, n: 3 }, status: "done" },
    "b-1": { result: null, output: null },
  },
  params: { mode: "fast" },
  item: ["p", "q"],
};

function value(text: string, lenient = false): Json {
  const parsed = parseExpression(text);
  assert.ok("expression" in parsed, JSON.stringify(parsed));
  return evaluate(parsed.expression, SCOPE, lenient);
}

function fault(text: string): { at: number; message: string } {
  const parsed = parseExpression(text);
  assert.ok("fault" in parsed, text);
  return parsed.fault;
}

Deno.test("an expression names values, parts of them, and compares", () => {
  const cases: [string, Json][] = [
    ["nodes.a.result", "text"],
    ["nodes.a.output.list[0]", 1],
    ["nodes.a.output.list.0", 1],
    ['nodes.a.output.list[1]["my key"]', "x"],
    ["nodes.b-1.result", null],
    ["nodes.b-1.output.deep.er", null],
    ["item[1]", "q"],
    ["nodes.a.output.n > 2 and params.mode == 'fast'", true],
    ["nodes.a.output.n >= 4 or not nodes.a.output.ok", false],
    ["not (nodes.a.output.n < 2)", true],
    ["not not nodes.a.result", true],
    ['"p" in item', true],
    ['"ex" in nodes.a.result', true],
    ['"ok" in nodes.a.output', true],
    ["1 in null", false],
    ["nodes.a.output.n != 3", false],
    ["nodes.a.output == nodes.a.output", true],
    ['"5" == 5', false],
    ["'it\\'s'", "it's"],
    ["-1.5e1", -15],
    ["true or nodes.nothing.here", true],
    ["nodes.b-1.result or nodes.a.result", "text"],
    ["nodes.a.result and item", ["p", "q"]],
    ["false and nodes.nothing.here", false],
  ];
  for (const [text, wanted] of cases) assert.deepEqual(value(text), wanted, text);
});

Deno.test("a mistake in an expression is told with its place", () => {
  const cases: [string, number, RegExp][] = [
    ["", 0, /empty/],
    ["a &&b", 2, /"&&" is not known here; write "and"/],
    ["a = b", 2, /write "=="/],
    ["!a", 0, /write "not"/],
    ["a ==", 4, /A value is missing at the end/],
    ["a == b == c", 7, /Only one comparison/],
    ["(a or b", 7, /isn't closed/],
    ["a b", 2, /"b" is not expected here/],
    ["a.", 1, /A name is missing after "."/],
    ["a[b]", 2, /Expected a position/],
    ["a['x", 2, /closing quote/],
    ["a $ b", 2, /"\$" is not known here/],
    ["and a", 0, /A value is missing before "and"/],
    [`${"(".repeat(40)}a${")".repeat(40)}`, 32, /nested too deep/],
    ["a".repeat(EXPRESSION_CHARS_MAX + 1), 0, /at most 2000 characters/],
  ];
  for (const [text, at, message] of cases) {
    const found = fault(text);
    assert.match(found.message, message, text);
    assert.equal(found.at, at, text);
  }
});

Deno.test("what isn't there has no value, unless one asks whether it is", () => {
  assert.throws(
    () => value("nodes.a.output.nothing"),
    (thrown: Error) =>
      thrown instanceof EvaluationError &&
      thrown.message ===
        "nodes.a.output.nothing isn't there: nodes.a.output is a mapping with list, ok, n",
  );
  assert.throws(() => value("nodes.a.output.list[7]"), /nodes\.a\.output\.list is a list of 2/);
  assert.throws(() => value("nodes.a.result.x"), /nodes\.a\.result is a text/);
  assert.throws(() => value("item < 3"), /compares two numbers or two texts/);
  assert.throws(() => value("item in 3"), /looks in a list, a text or a mapping/);
  assert.equal(value("nodes.a.output.nothing == 3", true), false);
  assert.equal(value("nodes.a.constructor", true), null);
  assert.equal(value("nodes.__proto__.x", true), null);
});

Deno.test("expressions in a text are filled in, and what comes of them is data", () => {
  const fill = (text: string, result: Json) =>
    fillIn(parseText(text).parts, { nodes: { a: { result } } });
  assert.equal(fill("<${{ nodes.a.result }}>", "${{ params.secret }}"), "<${{ params.secret }}>");
  assert.equal(fill("${{nodes.a.result}}${{ nodes.a.result }}", 7), "77");
  assert.equal(fill("${{ nodes.a.result }}", ["x", { y: 1 }]), '["x",{"y":1}]');
  assert.equal(fill("[${{ nodes.a.result }}]", null), "[]");
  assert.equal(fill("a $${{ b }} $x ${HOME}", 1), "a ${{ b }} $x ${HOME}");
  assert.equal(fill('${{ "}}" }}', 1), "}}");
  const big = "x".repeat(TEXT_CHARS_MAX / 2 + 1);
  assert.throws(() => fill("${{ nodes.a.result }}${{ nodes.a.result }}", big), /longer than/);
});

Deno.test("mistakes in a text are told at their place in it", () => {
  assert.deepEqual(parseText("ab ${{ x").faults[0]?.at, 3);
  assert.deepEqual(parseText("ab ${{ x = 1 }}").faults[0]?.at, 9);
  assert.deepEqual(parseText("ab ${{ x }} ${{ y }}").offsets, [6, 15]);
});

Deno.test("a condition stands alone, with or without its braces", () => {
  for (const text of ["params.mode", "${{ params.mode }}", "  ${{params.mode}} "]) {
    const parsed = parseLone(text);
    assert.ok("expression" in parsed, text);
    assert.equal(evaluate(parsed.expression, SCOPE), "fast");
  }
  const parsed = parseLone("${{ a || b }}");
  assert.equal("fault" in parsed && parsed.fault.at, 6);
});
