import assert from "node:assert/strict";
import { styleFor } from "./style.ts";

Deno.test("colour needs a terminal, and no one who says no", () => {
  assert.equal(styleFor(true, {}).red("x"), "\x1b[31mx\x1b[39m");
  assert.equal(styleFor(true, { NO_COLOR: "" }).red("x"), "\x1b[31mx\x1b[39m");
  assert.equal(styleFor(true, { NO_COLOR: "1" }).red("x"), "x");
  assert.equal(styleFor(true, { TERM: "dumb" }).bold("x"), "x");
  assert.equal(styleFor(false, {}).dim("x"), "x");
});

Deno.test("nothing is painted without a letter", () => {
  assert.equal(styleFor(true, {}).yellow(""), "");
});
