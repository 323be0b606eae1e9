import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../src/base/json.ts";
import { checkChatRequest } from "./chat_request_check.ts";

const call = (id: string, name = "read", args = "{}"): JsonObject => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const tool = (name: string, parameters: Json = { type: "object", properties: {} }): JsonObject => ({
  type: "function",
  function: { name, parameters },
});
const USER: JsonObject = { role: "user", content: "go" };
const calls = (...list: JsonObject[]): JsonObject => ({
  role: "assistant",
  content: null,
  tool_calls: list,
});
const result = (id: string): JsonObject => ({ role: "tool", tool_call_id: id, content: "ok" });
const sound = (messages: Json[], tools?: Json[]): JsonObject => ({
  model: "m",
  stream: true,
  messages,
  ...(tools === undefined ? {} : { tools }),
});

Deno.test("the endpoint takes a sound request", () => {
  const messages = [
    { role: "system", content: "s" },
    USER,
    calls(call("a"), call("b")),
    result("a"),
    result("b"),
    { role: "assistant", content: "done" },
    USER,
  ];
  assert.deepEqual(checkChatRequest(sound(messages, [tool("read")])), []);
});

const UNSOUND: [string, JsonObject, RegExp][] = [
  [
    "a missing result",
    sound([USER, calls(call("a"), call("b")), result("a"), USER]),
    /results are missing for b/,
  ],
  ["a result missing at the end", sound([USER, calls(call("a"))]), /missing at the end for a/],
  [
    "results out of order",
    sound([USER, calls(call("a"), call("b")), result("b"), result("a")]),
    /expected "a"/,
  ],
  [
    "a second result",
    sound([USER, calls(call("a")), result("a"), result("a")]),
    /expected undefined/,
  ],
  ["an empty call id", sound([USER, calls(call("")), result("")]), /without an id/],
  [
    "a repeated call id",
    sound([USER, calls(call("a")), result("a"), calls(call("a")), result("a")]),
    /twice/,
  ],
  ["an empty content", sound([{ role: "user", content: "" }]), /content is ""/],
  [
    "an assistant that says nothing",
    sound([USER, { role: "assistant", content: null }, USER]),
    /content is null/,
  ],
  [
    "arguments that aren't JSON",
    sound([USER, calls(call("a", "read", "{")), result("a")]),
    /aren't a JSON object/,
  ],
  [
    "a call under an invalid name",
    sound([USER, calls(call("a", "no no")), result("a")]),
    /call of "no no"/,
  ],
  ["a tool under an invalid name", sound([USER], [tool("a.b")]), /tool name "a\.b" is invalid/],
  ["a tool under a long name", sound([USER], [tool("x".repeat(65))]), /is invalid/],
  ["two tools of one name", sound([USER], [tool("a"), tool("a")]), /there twice/],
  ["no tools in a list", sound([USER], []), /empty list/],
  [
    "a schema of a string",
    sound([USER], [tool("a", { type: "string" })]),
    /must have type "object"/,
  ],
  [
    "a union at the top",
    sound([USER], [tool("a", { type: "object", properties: {}, anyOf: [] })]),
    /anyOf at the top/,
  ],
  [
    "a boolean subschema",
    sound([USER], [tool("a", { type: "object", properties: { x: true } })]),
    /subschema at "\/x" is true/,
  ],
  [
    "a reference",
    sound([USER], [tool("a", { type: "object", properties: { x: { $ref: "#" } } })]),
    /\$ref at "\/x"/,
  ],
  [
    "a list of types",
    sound([USER], [tool("a", { type: "object", properties: { x: { type: ["string", "null"] } } })]),
    /type \["string","null"\]/,
  ],
  [
    "a lone surrogate",
    sound([{ role: "user", content: "\ud83d" }]),
    /lone surrogate at \/messages\/0\/content/,
  ],
  ["a late system message", sound([USER, { role: "system", content: "s" }]), /isn't the first/],
  ["no messages", sound([]), /filled list/],
];

for (const [what, body, expected] of UNSOUND) {
  Deno.test(`the endpoint refuses ${what}`, () =>
    assert.match(checkChatRequest(body).join("; "), expected));
}
