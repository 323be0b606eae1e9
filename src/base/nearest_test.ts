import assert from "node:assert/strict";
import { editDistance, nearest } from "./nearest.ts";

Deno.test("a letter lost, added, changed or swapped counts as one mistake", () => {
  assert.equal(editDistance("command", "command"), 0);
  assert.equal(editDistance("comand", "command"), 1);
  assert.equal(editDistance("commmand", "command"), 1);
  assert.equal(editDistance("cammand", "command"), 1);
  assert.equal(editDistance("commnad", "command"), 1);
  assert.equal(editDistance("", "abc"), 3);
  assert.equal(editDistance("abc", ""), 3);
});

Deno.test("the nearest word is found, case and dashes aside", () => {
  const known = ["command", "args", "startup_timeout", "timeout"];
  assert.equal(nearest("comand", known), "command");
  assert.equal(nearest("startupTimeout", known), "startup_timeout");
  assert.equal(nearest("startup-timeout", known), "startup_timeout");
  assert.equal(nearest("Args", known), "args");
  assert.equal(nearest("timeot", known), "timeout");
});

Deno.test("a word that is no typing mistake of any is not explained by one", () => {
  assert.equal(nearest("volumes", ["command", "args", "env"]), undefined);
  assert.equal(nearest("x", ["command"]), undefined);
  assert.equal(nearest("", ["command"]), undefined);
  assert.equal(nearest("a".repeat(10_000), ["a".repeat(10_000)]), undefined);
  assert.equal(nearest("args", []), undefined);
});
