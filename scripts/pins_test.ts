import assert from "node:assert/strict";
import { LIBRARY_FOLDERS } from "./layers.ts";

const root = new URL("../", import.meta.url);

function text(path: string): string {
  return Deno.readTextFileSync(new URL(path, root));
}

const pin = text(".dvmrc").trim();

/** Every text in the repository that a person or a program takes commands from. */
function* texts(folder = ""): Generator<string> {
  for (const entry of Deno.readDirSync(new URL(folder === "" ? "." : folder, root))) {
    const path = folder + entry.name;
    if (entry.isDirectory) {
      if (![".git", "node_modules", "dist", "coverage"].includes(entry.name)) {
        yield* texts(`${path}/`);
      }
    } else if (/\.(md|ts|json|ya?ml|sh)$|\/(run|rnix)$/.test(`/${path}`)) yield path;
  }
}

Deno.test("every place that repeats the version of Deno agrees with .dvmrc", () => {
  assert.match(pin, /^\d+\.\d+\.\d+$/);
  let repeated = 0;
  for (const path of texts()) {
    for (const [found, version] of text(path).matchAll(/\bdeno(?:@| )v?(\d+\.\d+\.\d+)/gi)) {
      assert.equal(version, pin, `${path} says "${found}"`);
      repeated += 1;
    }
  }
  assert.ok(repeated >= 2, "README.md must name both commands with the pinned version");
});

Deno.test("the tests run on the pinned Deno", () => {
  assert.equal(Deno.version.deno, pin);
});

Deno.test("README.md gives the two commands, and .ci/run can find the second one in it", () => {
  const readme = text("README.md");
  for (const task of ["demo", "test"]) {
    assert.ok(readme.includes(`npx -y deno@${pin} task ${task}\n`), `no command for ${task}`);
  }
  assert.ok(text(".ci/run").includes("npx -y deno@[0-9.]* task test"));
});

Deno.test("rnix gets its permissions by name, each of them, and never all", () => {
  const flags = text("src/base/permissions.txt").trim().split(" ");
  assert.deepEqual(flags, [
    "--no-prompt",
    "--allow-read",
    "--allow-write",
    "--allow-env",
    "--allow-run",
    "--allow-net",
    "--allow-sys",
  ]);
  for (const path of ["rnix", "stub.sh", "build.ts"].map((name) => `scripts/${name}`)) {
    assert.ok(!text(path).includes("--allow-"), `${path} has a list of its own`);
  }
  for (const path of ["scripts/rnix", "deno.json", ".ci/run"]) {
    assert.ok(!/(^|\s)(-A|--allow-all)\b/m.test(text(path)), `${path} gives all permissions`);
  }
});

Deno.test("every library that the layers name is there, and none is there for nothing", () => {
  const config: { imports: { [name: string]: string } } = JSON.parse(text("deno.json"));
  const tests = [...texts("tests/")].map(text);
  for (const name of Object.keys(config.imports).filter((name) => !(name in LIBRARY_FOLDERS))) {
    assert.ok(tests.some((each) => each.includes(name)), `neither rnix nor a test uses ${name}`);
  }
  for (const name of Object.keys(LIBRARY_FOLDERS)) assert.ok(name in config.imports, name);
});

Deno.test("every npm package is pinned to one version, and the lock is complete and frozen", () => {
  const config: { imports: { [name: string]: string }; lock: { frozen: boolean } } = JSON.parse(
    text("deno.json"),
  );
  const lock: { workspace: { dependencies: string[] } } = JSON.parse(text("deno.lock"));
  assert.equal(config.lock.frozen, true);
  for (const [name, specifier] of Object.entries(config.imports)) {
    assert.match(specifier, /^npm:(@[^/@]+\/)?[^/@]+@\d+\.\d+\.\d+$/, name);
  }
  assert.deepEqual(
    lock.workspace.dependencies.toSorted(),
    Object.values(config.imports).toSorted(),
  );
});
