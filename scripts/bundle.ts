/**
 * The whole program as a handful of modules that need no source tree, no package and no cache: `main.mjs` and its chunks.
 *
 * `deno bundle` does the work. What is changed in its output is about the start: a chunk that a command doesn't use is neither read nor parsed,
 * and Node's module loader isn't started for a `require`.
 */

const ENTRY = "main.mjs";

/** A function that a bundler wraps around `require`, as it comes out minified. */
const REQUIRE =
  /if\(typeof require<"u"\)return require\.apply\(this,arguments\);throw Error\('Dynamic require of "'\+(\w+)\+/g;

/** Modules by file name, the entry first, the rest sorted. Throws an Error that ends with what the bundler said. */
export async function bundle(root: string): Promise<Map<string, string>> {
  const folder = Deno.makeTempDirSync({ prefix: "rnix-bundle-" });
  try {
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["bundle", "--quiet", "--platform", "deno", "--code-splitting"],
        ...["--minify", "--keep-names", "--outdir", folder, "main.ts"],
      ],
      cwd: root,
      env: { NO_COLOR: "1" },
      stdout: "null",
    }).output();
    if (!success) throw new Error(`deno bundle failed: ${new TextDecoder().decode(stderr)}`);
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
    return modules(
      new Map(names.map((name) => [name, Deno.readTextFileSync(`${folder}/${name}`)])),
    );
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

/** The output of the bundler, by file name, made into the modules that are shipped. Throws an Error where it isn't as expected. */
export function modules(output: ReadonlyMap<string, string>): Map<string, string> {
  const names = [...output.keys()].sort();
  const strange = names.find((name) => !/^[\w-]+\.js$/.test(name));
  if (strange !== undefined) throw new Error(`deno bundle made a file "${strange}"`);
  const made = new Map(names.map((name) => [
    moduleName(name),
    // An empty file would look like one that was never written.
    withBuiltins(lateImports(output.get(name) ?? "", names)) || "export {};\n",
  ]));
  const entry = made.get(ENTRY);
  if (entry === undefined) throw new Error(`deno bundle made no ${ENTRY}, but ${names.join(", ")}`);
  made.delete(ENTRY);
  return new Map([[ENTRY, entry], ...made]);
}

/** `.mjs` is a module whatever a package.json in a folder above says. */
function moduleName(name: string): string {
  return name.replace(/\.js$/, ".mjs");
}

/** Deno reads and parses at its start whatever an `import()` names in a literal; behind a function it waits for the call. */
function lateImports(text: string, names: readonly string[]): string {
  for (const name of names) {
    const quoted = `"./${moduleName(name)}"`;
    text = text.replaceAll(`"./${name}"`, quoted)
      .replaceAll(`import(${quoted})`, `import((()=>${quoted})())`);
  }
  return text;
}

/** Packages in the older module format require what Deno has built in, and nothing else. */
function withBuiltins(text: string): string {
  const changed = text.replaceAll(
    REQUIRE,
    (found, name) =>
      `const builtin=globalThis.process.getBuiltinModule(${name});if(builtin)return builtin;` +
      found.slice(found.indexOf("throw ")),
  );
  const expected = text.split("Dynamic require of").length;
  if (changed.split("getBuiltinModule(").length < expected) {
    throw new Error("deno bundle wraps require in a new way; scripts/bundle.ts must follow");
  }
  return changed;
}
