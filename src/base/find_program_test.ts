import assert from "node:assert/strict";
import { disk } from "./disk.ts";
import { findProgram } from "./find_program.ts";

Deno.test("the first executable on the PATH is found, other files are not", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (const name of ["one", "two", "three"]) await Deno.mkdir(`${folder}/${name}`);
    await Deno.writeTextFile(`${folder}/one/tool`, "", { mode: 0o644 });
    await Deno.mkdir(`${folder}/one/sub`);
    await Deno.writeTextFile(`${folder}/two/tool`, "", { mode: 0o755 });
    await Deno.symlink(`${folder}/two/tool`, `${folder}/three/tool`);
    const path = `relative:${folder}/gone:${folder}/one:${folder}/two:${folder}/three`;
    assert.equal(await findProgram(disk, "tool", path), `${folder}/two/tool`);
    assert.equal(await findProgram(disk, "tool", `${folder}/three`), `${folder}/three/tool`);
    assert.equal(await findProgram(disk, "sub", path), undefined, "a folder is no program");
    assert.equal(await findProgram(disk, "missing", path), undefined);
    assert.equal(await findProgram(disk, "tool", undefined), undefined);
    assert.equal(await findProgram(disk, "tool", ""), undefined);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
