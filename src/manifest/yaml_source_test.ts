import assert from "node:assert/strict";
import { readYaml } from "./yaml_source.ts";

const TEXT = `a: 1
b:
  c: [x, "y", { d: z }]
  "q r": &anchor
    e: true
f: *anchor
1: one
`;

Deno.test("values are plain, and know where they stand", () => {
  const source = readYaml(TEXT);
  assert.deepEqual(source.mistakes, []);
  assert.deepEqual(source.value, {
    a: 1,
    b: { c: ["x", "y", { d: "z" }], "q r": { e: true } },
    f: { e: true },
    1: "one",
  });
  const values: [path: (string | number)[], line: number, column: number][] = [
    [[], 1, 1],
    [["a"], 1, 4],
    [["b", "c", 1], 3, 10],
    [["b", "c", 2, "d"], 3, 20],
    [["b", "q r", "e"], 5, 8],
    [["f", "e"], 5, 8],
    [["1"], 7, 4],
  ];
  for (const [path, line, column] of values) {
    assert.deepEqual(source.valueAt(path), { line, column }, path.join("."));
  }
  const keys: [path: (string | number)[], line: number, column: number][] = [
    [["b"], 2, 1],
    [["b", "c"], 3, 3],
    [["b", "q r"], 4, 3],
    [["b", "c", 2, "d"], 3, 17],
    [["f", "e"], 5, 5],
    [["1"], 7, 1],
  ];
  for (const [path, line, column] of keys) {
    assert.deepEqual(source.keyAt(path), { line, column }, path.join("."));
  }
});

Deno.test("a path that leads nowhere is placed at its nearest part that exists", () => {
  const source = readYaml(TEXT);
  assert.deepEqual(source.valueAt(["b", "c", 9, "x"]), source.valueAt(["b", "c"]));
  assert.deepEqual(source.valueAt(["gone"]), { line: 1, column: 1 });
  assert.deepEqual(source.keyAt(["b", "gone"]), source.valueAt(["b"]));
  assert.deepEqual(source.keyAt([]), { line: 1, column: 1 });
});

Deno.test("each duplicate key is told, and the rest is still looked at", () => {
  const source = readYaml('a: 1\na: 2\nb: { "c": 1, "c": 2 }\n');
  assert.deepEqual(source.mistakes.map(({ position, message }) => [position.line, message]), [
    [2, 'Duplicate key "a": line 1 has it already'],
    [3, 'Duplicate key "c": line 3 has it already'],
  ]);
  assert.notEqual(source.value, undefined);
});

Deno.test("aliases may repeat a value, not multiply it", () => {
  const fine = readYaml(
    `a: &a { x: 1 }\n${Array.from({ length: 20 }, (_, i) => `k${i}: *a`).join("\n")}`,
  );
  assert.deepEqual(fine.mistakes, []);
  const levels = Array.from(
    { length: 9 },
    (_, level) => `l${level + 1}: &l${level + 1} [${Array(9).fill(`*l${level}`).join(", ")}]`,
  );
  const began = performance.now();
  const bomb = readYaml(["l0: &l0 [x]", ...levels].join("\n"));
  assert.equal(bomb.value, undefined);
  assert.match(bomb.mistakes[0]?.message ?? "", /^Aliases multiply/);
  // Spread out, its values would be hundreds of millions.
  assert.ok(performance.now() - began < 30_000);
});

Deno.test("lists and mappings as keys are refused, each with its place", () => {
  const source = readYaml("a: 1\n? [x, y]\n: 1\nb: &m { c: d }\n? *m\n: 2\n");
  assert.deepEqual(source.mistakes.map(({ position, message }) => [position.line, message]), [
    [2, "A key must be plain text"],
    [5, "A key must be plain text"],
  ]);
  assert.equal(source.value, undefined);
});

Deno.test("a value that holds itself doesn't hang", () => {
  const { value, mistakes } = readYaml("a: &a [*a]\n");
  assert.deepEqual(mistakes, []);
  assert.ok(typeof value === "object" && value !== null && "a" in value && Array.isArray(value.a));
  assert.equal(value.a[0], value.a);
});

Deno.test("merge keys of old YAML are keys like any other", () => {
  assert.deepEqual(readYaml("<<: { a: 1 }\n").value, { "<<": { a: 1 } });
});

Deno.test("yes, no, on and dates are texts", () => {
  assert.deepEqual(readYaml("a: yes\nb: on\nc: 2026-01-01\nd: 0o17\ne: 012\n").value, {
    a: "yes",
    b: "on",
    c: "2026-01-01",
    d: 15,
    e: 12,
  });
});

Deno.test("a piece of a value has a place of its own, and what isn't there has none", () => {
  const source = readYaml('a: { b: "x ${V} y" }\nc: [1, "two ${W}"]\n');
  assert.deepEqual(source.pieceOf(["a", "b"], "${V}"), { line: 1, column: 12 });
  assert.deepEqual(source.pieceOf(["c", 1], "${W}"), { line: 2, column: 13 });
  assert.deepEqual(source.pieceOf(["a", "b"], "${W}"), { line: 1, column: 9 });
  assert.deepEqual(source.placeOf(["c", 1]), { line: 2, column: 8 });
  assert.equal(source.placeOf(["c", 2]), undefined);
  assert.equal(source.pieceOf(["a", "d"], "x"), undefined);
});
