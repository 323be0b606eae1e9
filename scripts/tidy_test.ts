import assert from "node:assert/strict";
import { complaintsOf, readTree, type Tree } from "./tidy.ts";

/** A tree of files that import what is named; every import is reached from main.ts unless `main` says otherwise. */
function tree(imports: { [file: string]: string[] }, libraries: { [file: string]: string[] } = {}) {
  const made: Tree = { files: new Map(), imports: new Map(), broken: [] };
  for (const [file, files] of Object.entries(imports)) {
    made.files.set(file, "");
    made.imports.set(file, { files, libraries: libraries[file] ?? [] });
  }
  return made;
}

Deno.test("[A10] a cycle is named file by file", () => {
  const knot = tree({
    "main.ts": ["src/base/a.ts"],
    "src/base/a.ts": ["src/base/b.ts"],
    "src/base/b.ts": ["src/base/c.ts"],
    "src/base/c.ts": ["src/base/a.ts"],
  });
  assert.deepEqual(complaintsOf(knot), [
    "import cycle: src/base/a.ts -> src/base/b.ts -> src/base/c.ts -> src/base/a.ts",
  ]);
  knot.imports.set("src/base/c.ts", { files: [], libraries: [] });
  assert.deepEqual(complaintsOf(knot), []);
});

Deno.test("a file that only its own test imports is dead", () => {
  const dead = {
    "main.ts": [],
    "src/base/a.ts": [],
    "src/base/a_test.ts": ["src/base/a.ts"],
  };
  assert.deepEqual(complaintsOf(tree(dead)), [
    "src/base/a.ts: nothing reaches it from main.ts or from another file's test",
  ]);
  assert.deepEqual(complaintsOf(tree({ ...dead, "main.ts": ["src/base/a.ts"] })), []);
  const other = { ...dead, "tests/whole_test.ts": ["src/base/a.ts"] };
  assert.deepEqual(complaintsOf(tree(other)), []);
});

Deno.test("programs of their own need no importer", () => {
  const programs = [
    "main.ts",
    "scripts/x.ts",
    "tests/servers/x.ts",
    "tests/bench/x.ts",
    "tests/crash/main.ts",
  ];
  assert.deepEqual(complaintsOf(tree(Object.fromEntries(programs.map((path) => [path, []])))), []);
  const lone = tree({ "main.ts": [], "tests/crash/x.ts": [] });
  assert.equal(complaintsOf(lone).length, 1);
  lone.files.set("tests/crash/x.ts", "if (import.meta.main) start();");
  assert.deepEqual(complaintsOf(lone), []);
});

Deno.test("[A10] a file of 601 lines is too long, one of 600 isn't", () => {
  const made = tree({ "main.ts": [] });
  made.files.set("main.ts", "x\n".repeat(600));
  assert.deepEqual(complaintsOf(made), []);
  made.files.set("main.ts", "x\n".repeat(601));
  assert.deepEqual(complaintsOf(made), ["main.ts: 601 lines, at most 600"]);
});

Deno.test("a library stays behind its folder", () => {
  const files = {
    "main.ts": ["src/manifest/a.ts", "src/kernel/b.ts"],
    "src/manifest/a.ts": [],
    "src/kernel/b.ts": [],
    "src/kernel/b_test.ts": [],
  };
  const libraries = {
    "src/manifest/a.ts": ["zod"],
    "src/kernel/b.ts": ["zod", "left-pad"],
    "src/kernel/b_test.ts": ["zod"],
    "main.ts": ["yaml"],
  };
  const complaints = complaintsOf(tree(files, libraries));
  assert.equal(complaints.length, 3);
  assert.match(complaints[0] ?? "", /^main\.ts: "yaml" belongs to .*src\/manifest/);
  assert.match(complaints[1] ?? "", /^src\/kernel\/b\.ts: "zod" belongs to .*src\/manifest/);
  assert.equal(complaints[2], 'src/kernel/b.ts: "left-pad" belongs to tests');
});

Deno.test("[A10] a rule of the house can't be switched off in a comment", () => {
  const made = tree({ "main.ts": [] });
  const off = "deno-lint-" + "ignore";
  made.files.set("main.ts", `// ${off} no-control-regex\n// ${off} no-explicit-any\n`);
  assert.deepEqual(complaintsOf(made), [`main.ts:2: "no-explicit-any" can't be switched off`]);
  made.files.set("main.ts", `// ${off}-file rnix/function-length\n`);
  assert.deepEqual(complaintsOf(made), [`main.ts:1: "rnix/" can't be switched off`]);
});

Deno.test("[A10] type, dynamic and inline type imports of real files count, and a missing file is told", async () => {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-tidy-" }));
  try {
    for (const folder of ["src/base", "tests", "scripts"]) {
      Deno.mkdirSync(`${root}/${folder}`, { recursive: true });
    }
    const write = (path: string, text: string) => Deno.writeTextFileSync(`${root}/${path}`, text);
    write("deno.json", "{}");
    write("main.ts", `import type { A } from "./src/base/a.ts"; export type M = A;`);
    write("src/base/a.ts", `export type A = import("./b.ts").B;`);
    write("src/base/b.ts", `export type B = 1; export const c = () => import("./c.ts");`);
    write("src/base/c.ts", `export * from "./a.ts"; import "./gone.ts";`);
    const complaints = complaintsOf(await readTree(`${root}/`));
    assert.match(complaints[0] ?? "", /^src\/base\/gone\.ts: Module not found/);
    assert.deepEqual(complaints.slice(1), [
      "import cycle: src/base/a.ts -> src/base/b.ts -> src/base/c.ts -> src/base/a.ts",
    ]);
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
});

Deno.test("[A10] `any` in a source file fails the linter that `deno task ok` runs", async () => {
  const path = Deno.makeTempFileSync({ suffix: ".ts" });
  try {
    Deno.writeTextFileSync(path, "export const loose: any = 1;\n");
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["lint", "--config", new URL("../deno.json", import.meta.url).pathname, path],
      env: { NO_COLOR: "1" },
    }).output();
    assert.equal(code, 1);
    assert.match(new TextDecoder().decode(stderr), /no-explicit-any/);
  } finally {
    Deno.removeSync(path);
  }
});
