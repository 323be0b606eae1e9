/** The search on a made-up disk: owners, modes and borders that a test could not make for real without rights. */
import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import type { FileFacts, Storage } from "../base/storage.ts";
import { findProjectFolder } from "./project_folder.ts";

type Sketch = { [path: string]: Partial<FileFacts> };

function search(sketch: Sketch, cwd: string, home: string | undefined = "/home/u") {
  const looked: string[] = [];
  const storage: Storage = {
    ...disk,
    stat(path) {
      looked.push(path);
      const isProject = path.endsWith("/.rnix");
      const facts = sketch[path] ?? (isProject ? undefined : {});
      return Promise.resolve(
        facts === undefined ? undefined : {
          ...{ kind: "folder", sizeBytes: 0, modifiedMs: 0, mode: 0o755, uid: 1000 },
          ...{ deviceId: 1, ...facts },
        },
      );
    },
  };
  return { looked, found: findProjectFolder({ storage, cwd, home, uid: 1000 }) };
}

Deno.test("the nearest folder wins, HOME included", async () => {
  const sketch = { "/home/u/.rnix": {}, "/home/u/a/.rnix": {} };
  assert.deepEqual(await search(sketch, "/home/u/a/b/c").found, { path: "/home/u/a/.rnix" });
  assert.deepEqual(await search(sketch, "/home/u/x").found, { path: "/home/u/.rnix" });
  assert.deepEqual(await search(sketch, "/home/u").found, { path: "/home/u/.rnix" });
});

Deno.test("nothing above HOME is looked at", async () => {
  const { looked, found } = search({ "/home/.rnix": {}, "/.rnix": {} }, "/home/u/a");
  assert.equal(await found, undefined);
  assert.ok(!looked.includes("/home/.rnix"));
});

Deno.test("outside HOME, or without one, the search goes up to the root", async () => {
  const sketch = { "/.rnix": {} };
  assert.deepEqual(await search(sketch, "/srv/a/b").found, { path: "/.rnix" });
  assert.deepEqual(await search(sketch, "/srv", undefined).found, { path: "/.rnix" });
  assert.equal(await search({}, "/srv/a/b").found, undefined);
});

Deno.test("another file system is another project", async () => {
  const sketch = {
    "/home/u/.rnix": {},
    "/home/u/mnt": { deviceId: 2 },
    "/home/u/mnt/a": { deviceId: 2 },
  };
  const { looked, found } = search(sketch, "/home/u/mnt/a");
  assert.equal(await found, undefined);
  assert.ok(looked.includes("/home/u/mnt/.rnix") && !looked.includes("/home/u/.rnix"));
});

Deno.test("only a folder of one's own that nobody else can write is followed", async () => {
  const cases: [Partial<FileFacts>, RegExp | undefined][] = [
    [{}, undefined],
    [{ mode: 0o700 }, undefined],
    [{ mode: 0o755 }, undefined],
    [{ mode: undefined, uid: undefined }, undefined],
    [{ mode: 0o775 }, /other users may write it; run "chmod go-w \/p\/.rnix"/],
    [{ mode: 0o702 }, /other users may write it/],
    [{ uid: 0 }, /it belongs to user 0, not to you \(1000\)/],
    [{ kind: "link" }, /it is a link/],
    [{ kind: "file" }, /it is not a folder/],
  ];
  for (const [facts, words] of cases) {
    const found = await search({ "/p/.rnix": facts }, "/p").found;
    assert.equal(found?.path, "/p/.rnix");
    if (words === undefined) assert.equal(found?.refused, undefined);
    else assert.match(found?.refused ?? "", words);
  }
});

Deno.test("a refused folder ends the search", async () => {
  const found = await search({ "/home/u/.rnix": {}, "/home/u/a/.rnix": { uid: 7 } }, "/home/u/a")
    .found;
  assert.equal(found?.path, "/home/u/a/.rnix");
});
