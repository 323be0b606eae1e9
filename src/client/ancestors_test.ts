import assert from "node:assert/strict";
import { isInsideRun } from "./ancestors.ts";

const program = `
import { isInsideRun } from ${JSON.stringify(new URL("./ancestors.ts", import.meta.url).href)};
const [daemonPid] = Deno.args;
console.log(await isInsideRun({}, Deno.pid, daemonPid === undefined ? undefined : Number(daemonPid)));
`;

/** What a program says that is started by a shell with the mark, which takes the mark off for it. */
async function saidBelow(
  mark: { [name: string]: string },
  { line = 'env -u RNIX_INSTANCE "$@"; exit $?', daemonPid }: {
    line?: string;
    daemonPid?: number;
  } = {},
): Promise<string> {
  const folder = Deno.makeTempDirSync({ prefix: "rnix-ancestors-" });
  try {
    Deno.writeTextFileSync(`${folder}/program.ts`, program);
    const { stdout } = await new Deno.Command("/bin/sh", {
      args: [
        ...["-c", line, "sh", Deno.execPath(), "run", "-A", "--no-config", `${folder}/program.ts`],
        ...(daemonPid === undefined ? [] : [String(daemonPid)]),
      ],
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

Deno.test({
  name: "[R18] below the daemon is inside of a run, though every mark on the way was left behind",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const line = 'exec env -u RNIX_INSTANCE "$@"';
    const mark = { RNIX_INSTANCE: "12345678-test" };
    assert.equal(await saidBelow(mark, { line, daemonPid: Deno.pid }), "true");
    assert.equal(await saidBelow({}, { line, daemonPid: 2 ** 22 + 1 }), "false");
  },
});

Deno.test("a process that there isn't has no ancestors", async () => {
  assert.equal(await isInsideRun({}, 2 ** 22 + 1), false);
});
