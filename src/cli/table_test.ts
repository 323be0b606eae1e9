import assert from "node:assert/strict";
import { textTable } from "./table.ts";

Deno.test("columns are as wide as what they hold, numbers stand at the right", () => {
  assert.deepEqual(
    textTable([{ heading: "A", right: true }, { heading: "NAME" }, { heading: "B" }], [
      ["1", "体", "x"],
      ["100", "b", ""],
    ]),
    ["  A  NAME  B", "  1  体    x", "100  b"],
  );
});

Deno.test("the last column is cut to the width, and no line is wider", () => {
  const table = (width: number) =>
    textTable([{ heading: "A" }, { heading: "TEXT" }], [["a", "0123456789abcdef"]], { width })[1];
  assert.equal(table(16), "a  0123456789ab…");
  assert.equal(table(5), "a  0…");
  assert.equal(table(80), "a  0123456789abcdef");
});

Deno.test("spare columns are left out one by one where the last one would get too little", () => {
  const columns = [
    { heading: "A", spare: true as const },
    { heading: "B" },
    { heading: "C", spare: true as const },
    { heading: "TEXT" },
  ];
  const table = (width: number) =>
    textTable(columns, [["aaa", "bbb", "ccc", "0123456789abcdef"]], { width })[0]?.split(/ +/);
  assert.deepEqual(table(31), ["A", "B", "C", "TEXT"]);
  assert.deepEqual(table(24), ["B", "C", "TEXT"]);
  assert.deepEqual(table(16), ["B", "TEXT"]);
});

Deno.test("a table without rows is its headings", () => {
  assert.deepEqual(textTable([{ heading: "A" }, { heading: "B" }], []), ["A  B"]);
});
