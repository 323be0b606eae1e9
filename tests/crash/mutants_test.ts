import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { MUTANTS } from "./mutant_list.ts";
import { copyTree, runMutant } from "./mutate.ts";

Deno.test("the crash harness notices when intent, sync, checksum or lease is taken out", async (t) => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const tree = await copyTree(root);
  try {
    for (const mutant of MUTANTS.filter(({ core }) => core)) {
      await t.step(mutant.name, async () => {
        const { every = 1, suite = "" } = mutant.core ?? {};
        const args = { every, suite, scenario: "parallel" };
        const { broken, exitCode, output } = await runMutant(tree, mutant, args);
        assert.notEqual(exitCode, 0, output);
        assert.ok(broken !== undefined && broken > 0, output);
      });
    }
  } finally {
    await Deno.remove(tree, { recursive: true });
  }
});

Deno.test("every mutant's text is in the tree exactly once", async () => {
  for (const { name, file, from } of MUTANTS) {
    const text = await Deno.readTextFile(new URL(`../../${file}`, import.meta.url));
    assert.equal(text.split(from).length, 2, name);
  }
});
