import assert from "node:assert/strict";
import { bundle, modules } from "./bundle.ts";

const ROOT = new URL("../", import.meta.url).pathname;

let made: Promise<Map<string, string>> | undefined;

/** The bundle of this tree, made once. */
function bundled(): Promise<Map<string, string>> {
  return made ??= bundle(ROOT);
}

const REQUIRE =
  `var r=(a=>a)(function(a){if(typeof require<"u")return require.apply(this,arguments);` +
  `throw Error('Dynamic require of "'+a+'" is not supported')});`;

/** Files that are read and parsed as soon as `name` is, by the imports that stand in a literal. */
function readWith(program: ReadonlyMap<string, string>, name: string): Set<string> {
  const read = new Set<string>();
  const visit = (each: string) => {
    if (read.has(each)) return;
    read.add(each);
    const text = program.get(each) ?? "";
    for (const [, found = ""] of text.matchAll(/(?:from|import|import\()\s*"\.\/([^"]+)"/g)) {
      visit(found);
    }
  };
  visit(name);
  return read;
}

Deno.test("the program is its modules alone: no package, no path of the machine that built it", async () => {
  const program = await bundled();
  assert.equal([...program.keys()][0], "main.mjs");
  for (const [name, text] of program) {
    assert.match(name, /^[\w-]+\.mjs$/);
    for (const [, specifier = ""] of text.matchAll(/(?:\bfrom|\bimport)\s*"([@.\w][-@./:\w]+)"/g)) {
      const inside = program.has(specifier.replace("./", ""));
      assert.ok(inside || specifier.startsWith("node:"), `${name} imports "${specifier}"`);
    }
    assert.ok(!text.includes(ROOT), `${name} names the source tree`);
    assert.ok(!text.includes("createRequire"), `${name} starts a module loader`);
  }
});

Deno.test("what every command reads at its start is a small part of the program, without any library", async () => {
  const program = await bundled();
  const sizeOf = (names: Iterable<string>) =>
    [...names].reduce((sum, name) => sum + (program.get(name) ?? "").length, 0);
  const read = readWith(program, "main.mjs");
  assert.ok(read.size > 1, "the imports were found");
  assert.ok(sizeOf(read) < 150_000, `${sizeOf(read)} characters`);
  assert.ok(sizeOf(program.keys()) > 1_500_000, "the rest is there");
  for (const name of read) {
    assert.ok(!/ZodError|JSONRPC|generativelanguage/.test(program.get(name) ?? ""), name);
  }
});

Deno.test("the same tree gives the same program", async () => {
  const [one, other] = [await bundled(), await bundle(ROOT)];
  assert.deepEqual([...one], [...other]);
});

/** What the bundler makes of three modules, with the hashes that it puts into names. */
function output(late: string, chunk: string): Map<string, string> {
  return new Map([
    [`chunk-${chunk}.js`, ""],
    [`late-${late}.js`, "export const late = 1;"],
    [
      "main.js",
      `import{a}from"./chunk-${chunk}.js";import "./chunk-${chunk}.js";` +
      `await import("./late-${late}.js");`,
    ],
  ]);
}

Deno.test("chunks are renamed where they are imported, and those imported late are hidden from the start", () => {
  assert.deepEqual([...modules(output("AAAAAAA1", "BBBBBBB2"))], [
    [
      "main.mjs",
      `import{a}from"./chunk-1.mjs";import "./chunk-1.mjs";await import((()=>"./late-2.mjs")());`,
    ],
    ["chunk-1.mjs", "export {};\n"],
    ["late-2.mjs", "export const late = 1;"],
  ]);
});

Deno.test("where the sources lie changes the bundler's names, not ours", () => {
  const chunks = new Map([
    ["chunk-X0000001.js", `import "./chunk-X0000002.js";1`],
    ["chunk-X0000002.js", `2`],
    ["main.js", `import"./chunk-X0000001.js";`],
  ]);
  const elsewhere = new Map([
    ["chunk-X0000008.js", `2`],
    ["chunk-X0000009.js", `import "./chunk-X0000008.js";1`],
    ["main.js", `import"./chunk-X0000009.js";`],
  ]);
  assert.deepEqual([...modules(chunks)], [...modules(elsewhere)]);
});

Deno.test("a require reaches what is built in, and is refused for anything else", () => {
  const text = modules(new Map([["main.js", REQUIRE + "return r;"]])).get("main.mjs") ?? "";
  const made: (name: string) => unknown = new Function(text)();
  assert.equal(made("node:process"), globalThis.process);
  assert.throws(() => made("left-pad"), /Dynamic require of "left-pad" is not supported/);
});

Deno.test("output that isn't as expected stops the build", () => {
  const refused: [{ [name: string]: string }, RegExp][] = [
    [{ "chunk.js": "" }, /made no main\.mjs, but chunk\.js/],
    [{ "main.js": "", "styles.css": "" }, /made a file "styles\.css"/],
    [{ "main.js": `throw Error('Dynamic require of "'+x)` }, /scripts\/bundle\.ts must follow/],
  ];
  for (const [output, message] of refused) {
    assert.throws(() => modules(new Map(Object.entries(output))), message);
  }
});
