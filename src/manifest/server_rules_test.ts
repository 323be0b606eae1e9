import assert from "node:assert/strict";
import type { ServerConfig } from "./agent_manifest.ts";
import { parseManifest } from "./parse_manifest.ts";
import { formatProblem, Problems } from "./problems.ts";

/** A manifest with one server of these keys, which begin in line 5, column 9. */
function parse(keys: string): { server: ServerConfig | undefined; told: string[] } {
  const text = "name: a\ninstructions: do\nmodels: { provider: scripted, script: s }\n" +
    `mcp: { servers: { s: {\n        ${keys}\n  } } }\n`;
  const problems = new Problems();
  const options = { file: "f", instructionsBeside: undefined };
  const { manifest } = parseManifest(text, options, problems);
  return { server: manifest?.servers?.[0], told: problems.list.map(formatProblem) };
}

Deno.test("[B1] a url without a type is http with sse as the fallback, a command is stdio", () => {
  const transport = (keys: string) => {
    const { server, told } = parse(keys);
    assert.deepEqual(told, [], keys);
    return server?.transport;
  };
  assert.equal(transport("url: https://x"), "auto");
  assert.equal(transport("url: https://x, transport_type: http"), "http");
  assert.equal(transport("url: http://127.0.0.1:8080/mcp, transport_type: sse"), "sse");
  assert.equal(transport("command: x"), "stdio");
  assert.equal(transport("command: x, transport_type: stdio"), "stdio");
  assert.equal(transport('url: "${SCHEME}://${HOST}"'), "auto");
});

Deno.test("keys that don't go together are told with what to do", () => {
  const cases: [keys: string, ...told: string[]][] = [
    [
      "required: true",
      'f:4:19: Missing key "command" (or "url") in mcp.servers.s',
    ],
    [
      "transport_type: http, headers: {}",
      'f:4:19: Missing key "command" (or "url") in mcp.servers.s',
    ],
    [
      "ulr: https://x, transport_type: http",
      'f:5:9: Unknown key "ulr" in mcp.servers.s; did you mean `url`?',
    ],
    [
      "command: c, url: https://x, args: [], headers: {}",
      'f:5:21: "url" and "command" don\'t go together: keep "command" for a server that is started, ' +
      '"url" for one at an address',
    ],
    [
      "url: https://x, args: [], env: {}, cwd: ., inherit_env: []",
      'f:5:25: "args" is for a server that is started, not for one with a "url"; remove it',
      'f:5:35: "env" is for a server that is started, not for one with a "url"; remove it; ' +
      'what the server is to know goes into "headers"',
      'f:5:44: "cwd" is for a server that is started, not for one with a "url"; remove it',
      'f:5:52: "inherit_env" is for a server that is started, not for one with a "url"; remove it; ' +
      'write "${NAME}" into "url" or "headers"',
    ],
    [
      "url: https://x, transport_type: stdio",
      'f:5:25: Transport "stdio" needs a "command", not a "url"; remove it, or say http or sse',
    ],
    [
      "command: c, transport_type: sse",
      'f:5:21: Transport "sse" needs a "url", not a "command"; remove it, or say stdio',
    ],
    [
      "command: c, headers: { a: b }",
      'f:5:21: "headers" go with a "url"; a server that is started takes "env"',
    ],
    [
      "url: https://x, transport_type: htp",
      'f:5:41: Expected one of stdio, http, sse, got "htp"; did you mean `http`?',
    ],
  ];
  for (const [keys, ...told] of cases) assert.deepEqual(parse(keys).told, told, keys);
});

Deno.test("an address is http or https and holds no user name or password", () => {
  const told = (url: string) => parse(`url: "${url}"`).told.join();
  for (const url of ["ftp://x", "x", "//x", "http:/", "", "unix:///a"]) {
    assert.match(told(url), /^f:5:14: Expected (a URL that begins with http|some text)/, url);
  }
  assert.match(told("https://me:secret@x"), /^f:5:14: A user name or a password in a URL/);
  assert.match(told("https://me@x"), /^f:5:14: A user name or a password in a URL/);
  assert.match(told("https://$HOST"), /^f:5:14: "\$HOST" is not a variable here/);
});

Deno.test("names of headers are checked: tokens, not rnix's own, each once whatever its case", () => {
  const told = (headers: string) => parse(`url: https://x, headers: { ${headers} }`).told;
  assert.deepEqual(told('Authorization: "Bearer ${T}", X-A.b_c: "", x-1: " a "'), []);
  assert.deepEqual(told('"a b": x, "ä": x, "": x, __proto__: x'), [
    'f:5:36: Invalid header name "a b"',
    'f:5:46: Invalid header name "ä"',
    'f:5:54: Invalid header name ""',
    'f:5:61: Invalid header name "__proto__"',
  ]);
  const reserved = [
    ...["Content-Type", "accept", "Mcp-Session-Id", "MCP-Protocol-Version", "mcp-method"],
    ...["mcp-name", "Mcp-Param-x", "Host", "Content-Length", "Connection", "Transfer-Encoding"],
  ];
  for (const name of reserved) {
    assert.deepEqual(told(`${name}: x`), [
      `f:5:36: Header "${name}" is set by rnix itself; remove it`,
    ]);
  }
  assert.deepEqual(told("X-Key: a, x-key: b"), [
    'f:5:46: Header "x-key" is there twice, as "X-Key" too: upper and lower case are the same',
  ]);
});

Deno.test("values of headers are text that a header can carry", () => {
  const told = (value: string) => parse(`url: https://x, headers: { a: ${value} }`).told.join();
  assert.equal(told('"tab\\tand caf\\u00e9"'), "");
  for (const value of ['"a\\r\\nb: c"', '"a\\n"', '"\\u0001"', '"\\u007f"']) {
    assert.match(told(value), /^f:5:39: The value of a header can't hold line ends/, value);
  }
  assert.match(told('"a\\0b"'), /^f:5:39: A NUL character can't be passed on/);
  assert.match(told('"€"'), /^f:5:39: The value of a header can't hold characters outside Latin-1/);
  assert.match(told("7"), /^f:5:39: Expected text, got the number 7/);
});
