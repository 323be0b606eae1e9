import assert from "node:assert/strict";
import { jsonMistakeAt } from "./json_mistake.ts";

Deno.test("the place of a mistake is where JSON stops being JSON", () => {
  const marked = [
    ...[
      '{"a": ^}',
      '{"a" ^1}',
      '{"a": 1 ^"b": 2}',
      '{"a": [1, ^]}',
      '{"a": [1 ^2]}',
      '{"a": ^secret}',
    ],
    ...[
      '{"a": "^',
      "{^a: 1}",
      '{"a": 1^]',
      "[1^}",
      '{"a": 1} ^x',
      "[^,]",
      '{"a": ^01}',
      "{}^}",
      "[1, ^",
    ],
  ];
  for (const text of marked) {
    const at = text.indexOf("^");
    const plain = text.replace("^", "");
    assert.throws(() => JSON.parse(plain), SyntaxError, plain);
    const expected = text === '{"a": "^' ? at - 1 : text === '{"a": ^01}' ? at + 1 : at;
    assert.equal(jsonMistakeAt(plain), expected, text);
  }
  const good = ['{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {}}', "[]", " 7 "];
  for (const text of good) assert.equal(jsonMistakeAt(text), text.length, text);
});
