import assert from "node:assert/strict";
import plugin from "./lint_plugin.ts";
import { MAY_IMPORT } from "./layers.ts";

/** Rules (without the plugin's name) that complain about `text` at `path`. */
function complaints(path: string, text: string): string[] {
  return Deno.lint.runPlugin(plugin, `/tree/${path}`, text).map((found) =>
    found.id.replace("rnix/", "")
  );
}

function messages(path: string, text: string): string[] {
  return Deno.lint.runPlugin(plugin, `/tree/${path}`, text).map((found) => found.message);
}

const DIRECTION = ["import-direction"];

Deno.test("[A10] a lower folder can't import a higher one, in any form of import", () => {
  const forms = [
    `import { spawn } from "../kernel/spawn.ts";`,
    `import type { Spawn } from "../kernel/spawn.ts";`,
    `import "../kernel/spawn.ts";`,
    `export { spawn } from "../kernel/spawn.ts";`,
    `export * from "../kernel/spawn.ts";`,
    `export const late = () => import("../kernel/spawn.ts");`,
    `export type Spawn = import("../kernel/spawn.ts").Spawn;`,
  ];
  for (const form of forms) assert.deepEqual(complaints("src/base/x.ts", form), DIRECTION, form);
});

Deno.test("leaves don't import each other, and each may import base", () => {
  for (const leaf of ["vfs", "journal", "mcp", "llm", "policy", "manifest"]) {
    assert.deepEqual(messages(`src/${leaf}/x.ts`, `import { a } from "../base/a.ts";`), []);
    const other = leaf === "vfs" ? "journal" : "vfs";
    assert.deepEqual(messages(`src/${leaf}/x.ts`, `import { a } from "../${other}/a.ts";`), [
      `src/${leaf} may not import src/${other}`,
    ]);
  }
});

Deno.test("every arrow of the table points down", () => {
  for (const [from, targets] of Object.entries(MAY_IMPORT)) {
    for (const to of targets) {
      assert.ok(!MAY_IMPORT[to]?.includes(from), `${from} and ${to} import each other`);
      assert.ok(to in MAY_IMPORT, `${to} has no row`);
    }
  }
});

Deno.test("a program takes types of the kernel and no code", () => {
  const code = `import { spawn } from "../kernel/spawn.ts";`;
  assert.deepEqual(messages("src/agent/x.ts", code), [
    "src/agent may import only types of src/kernel",
  ]);
  const contract = `import { callKey } from "../kernel/program.ts";`;
  assert.deepEqual(complaints("src/agent/x.ts", contract), []);
  const types = `import type { Program } from "../kernel/program.ts";`;
  assert.deepEqual(complaints("src/agent/x.ts", types), []);
  const inline = `import { type Program } from "../kernel/program.ts";`;
  assert.deepEqual(complaints("src/agent/x.ts", inline), []);
  assert.deepEqual(complaints("src/agent/x.ts", `import "../kernel/spawn.ts";`), DIRECTION);
});

Deno.test("a dynamic import must be a literal", () => {
  const text = "export const load = (name: string) => import(`../${name}.ts`);";
  assert.deepEqual(messages("src/daemon/x.ts", text), [
    "An import must name its file in a literal",
  ]);
});

Deno.test("src imports nothing from outside but the shipped agents", () => {
  const script = `import { x } from "../../scripts/x.ts";`;
  assert.deepEqual(complaints("src/daemon/x.ts", script), DIRECTION);
  const shipped = `import demo from "../../agents/demo/agent.yaml" with { type: "text" };`;
  assert.deepEqual(complaints("src/manifest/x.ts", shipped), []);
});

Deno.test("tests and files outside of src may import anything", () => {
  const text = `import { x } from "../daemon/x.ts";`;
  assert.deepEqual(complaints("src/base/x_test.ts", text), []);
  assert.deepEqual(complaints("tests/whole/x.ts", text), []);
});

Deno.test("[A10] a function of 71 lines is too long, one of 70 isn't, and letters beyond ASCII don't count double", () => {
  const body = (lines: number) => `  "é—😀";\n`.repeat(lines - 2);
  const forms = (lines: number) => [
    `function f() {\n${body(lines)}}`,
    `const f = () => {\n${body(lines)}};`,
    `class K { m() {\n${body(lines)}} }`,
  ];
  for (const form of forms(70)) assert.deepEqual(complaints("src/base/x.ts", form), []);
  for (const form of forms(71)) {
    assert.deepEqual(complaints("src/base/x.ts", form), ["function-length"]);
  }
});

Deno.test("only the command line prints", () => {
  for (const text of [`console.log(1)`, `Deno.stdout.writeSync(b)`, `process.stderr.write("x")`]) {
    assert.deepEqual(complaints("src/kernel/x.ts", text), ["print-only-in-cli"], text);
    assert.deepEqual(complaints("src/cli/x.ts", text), [], text);
    assert.deepEqual(complaints("main.ts", text), [], text);
  }
});

Deno.test("only main.ts ends the process", () => {
  for (const text of [`Deno.exit(1)`, `process.exit()`, `Deno.exitCode = 1`]) {
    assert.deepEqual(complaints("src/cli/x.ts", text), ["exit-only-in-main"], text);
    assert.deepEqual(complaints("main.ts", text), [], text);
  }
});

Deno.test("kernel and programs are handed time, randomness and environment", () => {
  const texts = [
    `Date.now()`,
    `new Date()`,
    `performance.now()`,
    `Math.random()`,
    `crypto.randomUUID()`,
    `Deno.env.get("HOME")`,
    `setTimeout(f, 1)`,
  ];
  for (const text of texts) {
    assert.deepEqual(complaints("src/kernel/x.ts", text), ["handed-in"], text);
    assert.deepEqual(complaints("src/base/x.ts", text), [], text);
    assert.deepEqual(complaints("src/kernel/x_test.ts", text), [], text);
  }
  assert.deepEqual(complaints("src/kernel/x.ts", `new Date(ts).toISOString()`), []);
});
