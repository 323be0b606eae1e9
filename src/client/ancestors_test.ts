import assert from "node:assert/strict";
import { isInsideRun } from "./ancestors.ts";

const program = `
import { isInsideRun } from ${JSON.stringify(new URL("./ancestors.ts", import.meta.url).href)};
console.log(await isInsideRun({}, Deno.pid));
`;

/** What a program says that is started by a shell with the mark, which takes the mark off for it. */
async function saidBelow(mark: { [name: string]: string }): Promise<string> {
  const folder = Deno.makeTempDirSync({ prefix: "rnix-ancestors-" });
  try {
    Deno.writeTextFileSync(`${folder}/program.ts`, program);
    const line = 'env -u RNIX_INSTANCE "$@"; exit $?';
    const { stdout } = await new Deno.Command("/bin/sh", {
      args: ["-c", line, "sh", Deno.execPath(), "run", "-A", "--no-config", `${folder}/program.ts`],
      env: mark,
    }).output();
    return new TextDecoder().decode(stdout).trim();
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("its own environment is enough", async () => {
  assert.equal(await isInsideRun({ RNIX_INSTANCE: "some" }, 1), true);
});

Deno.test({
  name: "an ancestor's mark is found where its own was taken off",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    assert.equal(await saidBelow({ RNIX_INSTANCE: "12345678-test" }), "true");
    assert.equal(await saidBelow({}), "false");
  },
});

Deno.test("a process that there isn't has no ancestors", async () => {
  assert.equal(await isInsideRun({}, 2 ** 22 + 1), false);
});
