/** Every fault of groups B and D that concerns what is built has a test that cites its id; a row that waits for a later part is named with its reason, and only as long as that holds. */
import assert from "node:assert/strict";

const LAST = { B: 73, D: 33 };

/** Rows whose part isn't built yet. */
const LATER: { [id: string]: string } = {
  B69: "tasks by handle",
  D17: "approvals",
  D29: "rnix as a server",
  D31: "rnix as a server",
};

const ROOT = new URL("../../", import.meta.url).pathname;

async function* testFiles(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* testFiles(`${folder}/${name}`);
    else if (/_(test|suite)\.ts$/.test(name)) yield `${folder}/${name}`;
  }
}

/** Ids in brackets, anywhere in the text of a test. */
async function citedIds(): Promise<Set<string>> {
  const cited = new Set<string>();
  for (const folder of ["src", "tests"]) {
    for await (const file of testFiles(ROOT + folder)) {
      if (file.endsWith("/cited_test.ts")) continue;
      const text = await Deno.readTextFile(file);
      for (const [, id = ""] of text.matchAll(/\[([BD]\d\d)\]/g)) cited.add(id);
    }
  }
  return cited;
}

Deno.test("each fault of the groups B and D is cited by a test, or waits for a part that isn't built", async () => {
  const cited = await citedIds();
  const rows = Object.entries(LAST).flatMap(([group, last]) =>
    Array.from(
      { length: (last + 1) / 2 },
      (_, row) => `${group}${String(2 * row + 1).padStart(2, "0")}`,
    )
  );
  assert.deepEqual(rows.filter((id) => !cited.has(id) && LATER[id] === undefined), [], "untested");
  assert.deepEqual(Object.keys(LATER).filter((id) => cited.has(id)), [], "tested after all");
  assert.deepEqual([...cited].filter((id) => !rows.includes(id)), [], "no such fault");
});
