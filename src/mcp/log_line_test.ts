import assert from "node:assert/strict";
import { keptLine, type LogSource, readLogLine } from "./log_line.ts";

Deno.test("whatever a line says and whoever it is of, it is read as it was taken", () => {
  const texts = ["plain", "", "[rnix] it is", "[stdout] ", "[stderr] x", "[other] y", " [rnix] z"];
  for (const text of texts) {
    for (const source of ["stderr", "stdout", "rnix"] satisfies LogSource[]) {
      assert.deepEqual(readLogLine(keptLine(text, source)), { source, text });
    }
  }
});

Deno.test("what a server says is kept as it is, unless it looks like another's", () => {
  assert.equal(keptLine("[info] ready", "stderr"), "[info] ready");
  assert.equal(keptLine("[rnix] all is well", "stderr"), "[stderr] [rnix] all is well");
});
