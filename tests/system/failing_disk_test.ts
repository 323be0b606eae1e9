import assert from "node:assert/strict";
import { insideNamespace } from "./failing_disk.ts";

for (
  const [fault, trial, name] of [
    ["[A21] ", "full", "a disk that is full"],
    ["", "folder", "a folder that is removed"],
  ] as const
) {
  Deno.test({
    name: `${fault}no effect leaves after ${name}: exit 7; with space the run goes on`,
    // It takes the right to mount.
    ignore: Deno.build.os !== "linux" || Deno.uid() !== 0,
    fn: async () => {
      const report = await insideNamespace(trial);
      if (report === undefined) return;
      assert.equal(report.code, 0, report.said);
    },
  });
}
