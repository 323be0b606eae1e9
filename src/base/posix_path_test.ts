import assert from "node:assert/strict";
import { posix } from "node:path";
import { basename, dirname, isAbsolute, join, relative, resolve } from "./posix_path.ts";

/** All paths of up to six of the pieces that paths can go wrong with. */
function* paths(pieces = 6): Generator<string> {
  yield "";
  if (pieces === 0) return;
  for (const piece of ["/", ".", "..", "a", "b.c"]) {
    for (const rest of paths(pieces - 1)) yield piece + rest;
  }
}

Deno.test("of one path each function gives what node:path gives", () => {
  let count = 0;
  for (const path of paths()) {
    count += 1;
    assert.equal(isAbsolute(path), posix.isAbsolute(path), path);
    assert.equal(join(path), posix.join(path), path);
    assert.equal(dirname(path), posix.dirname(path), path);
    assert.equal(basename(path), posix.basename(path), path);
    assert.equal(resolve(path), posix.resolve(path), path);
  }
  assert.ok(count > 10_000);
});

Deno.test("of two and three paths as well", () => {
  const few = [...paths(3)];
  for (const one of few) {
    for (const two of few) {
      assert.equal(join(one, two), posix.join(one, two), `${one} ${two}`);
      assert.equal(resolve(one, two), posix.resolve(one, two), `${one} ${two}`);
      assert.equal(relative(one, two), posix.relative(one, two), `${one} ${two}`);
    }
  }
  for (const one of ["", "/", "a", "/a/b", "../x"]) {
    for (const two of few) {
      assert.equal(join(one, two, "c"), posix.join(one, two, "c"));
      assert.equal(resolve(one, two, ".."), posix.resolve(one, two, ".."));
    }
  }
  assert.equal(join(), posix.join());
  assert.equal(resolve(), posix.resolve());
});
