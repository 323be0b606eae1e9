import assert from "node:assert/strict";
import { plainMessage } from "./invalid_result.ts";

const dump = (issues: unknown) =>
  `Invalid result for initialize: ${JSON.stringify(issues, null, 2)}`;

Deno.test("a validator's dump becomes a sentence that names the places", () => {
  assert.equal(
    plainMessage(dump([
      { path: ["protocolVersion"], message: "Invalid input: expected string, received undefined" },
      { path: ["serverInfo", "icons", 0], message: "Too big" },
      { path: [], message: 5 },
    ])),
    "its answer to initialize doesn't fit the protocol: " +
      "protocolVersion: expected string, received undefined; serverInfo.icons.0: Too big; " +
      "all of it: is invalid",
  );
});

Deno.test("many problems are told in part, none and a dump that isn't one in general", () => {
  const many = Array.from({ length: 9 }, (_, index) => ({ path: [index], message: "x" }));
  assert.match(plainMessage(dump(many)), /: 0: x; 1: x; 2: x; 3: x; and 5 more$/);
  const general = "its answer to initialize doesn't fit the protocol";
  assert.equal(plainMessage(dump([])), general);
  assert.equal(plainMessage("Invalid result for initialize: [oops]"), general);
});

Deno.test("any other message stays as it is", () => {
  for (const text of ["", "Connection closed", "Invalid result for x: nothing"]) {
    assert.equal(plainMessage(text), text);
  }
});
