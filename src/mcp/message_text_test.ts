import assert from "node:assert/strict";
import { JSON_DEPTH_MAX, nestsDeeper } from "../base/json.ts";
import { messagesOf, shallow } from "./message_text.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const cut = (text: string, depthMax: number) =>
  new TextDecoder().decode(shallow(bytes(text), depthMax));

Deno.test("a line gives its messages, a batch several, anything else none", () => {
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  assert.equal(messagesOf(bytes(ping)).length, 1);
  assert.equal(messagesOf(bytes(` \t[${ping},${ping}]`)).length, 2);
  const none = ["", " ", "y", '"x"', "1", "[]", "{", '{"not":"rpc"}', `[${ping},1]`, `${ping}x`];
  for (const text of none) assert.deepEqual(messagesOf(bytes(text)), [], text);
});

Deno.test("what is nested too deep becomes null, the rest stays as it was", () => {
  const rows: [string, string][] = [
    ["[[[1]]]", "[[null]]"],
    ["[[1],[[2],3],{}]", "[[1],[null,3],{}]"],
    ['{"a":{"b":{"c":{}}},"d":4}', '{"a":{"b":null},"d":4}'],
    ['["[[[",{"}":"\\"[[["},[[]]]', '["[[[",{"}":"\\"[[["},[null]]'],
    ['["\\\\",[[1]],"\\\\\\"]"]', '["\\\\",[null],"\\\\\\"]"]'],
  ];
  for (const [text, expected] of rows) assert.equal(cut(text, 2), expected, text);
  for (const [text] of rows) assert.equal(cut(text, 9), text);
});

Deno.test("broken text gives none of its own: it ends in the parser", () => {
  for (const text of ["]]]]]]]]", '["aaaaaaaaa', "[[[[[[[[", "{]}[}]{[{[{[{["]) {
    assert.deepEqual(messagesOf(bytes(text)), [], text);
    cut(text, 2);
  }
});

Deno.test("millions of levels are one cheap message, still too deep for a device", () => {
  const deep = "[".repeat(4_000_000) + "]".repeat(4_000_000);
  const [message] = messagesOf(bytes(`{"jsonrpc":"2.0","id":1,"result":{"a":${deep},"b":2}}`));
  assert.ok(message !== undefined && "result" in message);
  const result = JSON.parse(JSON.stringify(message.result));
  assert.equal(result.b, 2);
  assert.ok(nestsDeeper(result.a, JSON_DEPTH_MAX));
  assert.ok(!nestsDeeper(result.a, 4 * JSON_DEPTH_MAX), "cut before the parser saw it");
});
