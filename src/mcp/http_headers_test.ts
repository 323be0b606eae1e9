/** What of a message is repeated in headers, and which tools can't be called because of their marks. */
import assert from "node:assert/strict";
import type { Json } from "../base/json.ts";
import { argumentHeaders, bodyHeaders, markFault } from "./http_headers.ts";

const META = { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } };
const schema = (properties: { [name: string]: Json }): Json => ({ type: "object", properties });
const marked = (type: Json, header: Json = "Region"): Json => ({ type, "x-mcp-header": header });

Deno.test("a request that names its version has it, its method and its name in headers", () => {
  assert.deepEqual(bodyHeaders("tools/call", { name: "search", ...META }), {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "search",
  });
  assert.equal(bodyHeaders("resources/read", { uri: "x:y", ...META })["mcp-name"], "x:y");
  assert.deepEqual(Object.keys(bodyHeaders("tools/list", META)), [
    "mcp-protocol-version",
    "mcp-method",
  ]);
  assert.deepEqual(bodyHeaders("tools/call", { name: "search" }), {});
  assert.deepEqual(bodyHeaders("constructor", undefined), {});
});

Deno.test("marked arguments go as headers, at any depth, as text; what isn't given doesn't", () => {
  const inputSchema = schema({
    region: marked("string"),
    count: marked("integer", "Count"),
    dry: marked("boolean", "Dry"),
    inner: schema({ deep: marked("string", "Deep") }),
    absent: marked("string", "Absent"),
    none: marked("string", "None"),
    plain: { type: "string" },
  });
  const args = {
    region: "eu",
    count: 3,
    dry: false,
    inner: { deep: "d" },
    none: null,
    plain: "not told",
  };
  assert.deepEqual(argumentHeaders(inputSchema, args), {
    "mcp-param-Region": "eu",
    "mcp-param-Count": "3",
    "mcp-param-Dry": "false",
    "mcp-param-Deep": "d",
  });
  assert.deepEqual(argumentHeaders(inputSchema, { region: { a: 1 }, count: 2 ** 60 }), {});
  assert.deepEqual(argumentHeaders(undefined, args), {});
});

Deno.test("text that a header can't carry goes as base64, and so does text that looks like it", () => {
  const value = (text: string) =>
    argumentHeaders(schema({ a: marked("string", "A") }), { a: text })["mcp-param-A"];
  assert.equal(value("us west 1"), "us west 1");
  for (const text of ["", " padded ", "\tx", "a\r\nb", "héllo 世界", "=?base64?eA==?="]) {
    const [, encoded = ""] = /^=\?base64\?(.*)\?=$/.exec(value(text) ?? "") ?? [];
    assert.equal(new TextDecoder().decode(Uint8Array.fromBase64(encoded)), text);
  }
});

Deno.test("a mark that the protocol forbids makes a tool unusable, with the reason", () => {
  assert.equal(markFault(schema({ a: marked("string"), b: { type: "object" } })), undefined);
  assert.equal(markFault(schema({ "x-mcp-header": { type: "string" } })), undefined);
  assert.equal(markFault({ ...Object(schema({})), default: { "x-mcp-header": 1 } }), undefined);
  for (
    const [bad, reason] of [
      [schema({ a: marked("string", "") }), /no header name/],
      [schema({ a: marked("string", "My Header") }), /no header name/],
      [schema({ a: marked("string", 4) }), /no header name/],
      [schema({ a: marked("object") }), /no string, integer or boolean/],
      [schema({ a: marked("number") }), /no string, integer or boolean/],
      [schema({ a: marked(["string", "null"]) }), /no string, integer or boolean/],
      [schema({ a: marked("string", "Same"), b: marked("string", "same") }), /Two of its/],
      [schema({ a: { type: "array", items: marked("string") } }), /no property/],
      [schema({ a: { anyOf: [schema({ b: marked("string") })] } }), /no property/],
      [{ type: "object", $defs: { a: marked("string") } }, /no property/],
      [marked("string"), /no property/],
    ] as const
  ) assert.match(markFault(bad) ?? "none", reason);
});
