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
  const strange = [...output.keys()].find((name) => !/^[\w-]+\.js$/.test(name));
  if (strange !== undefined) throw new Error(`deno bundle made a file "${strange}"`);
  const names = shippedNames(output);
  const made = [...names].map(([name, shipped]): [string, string] => [
    shipped,
    // An empty file would look like one that was never written.
    withBuiltins(withImports(output.get(name) ?? "", names)) || "export {};\n",
  ]);
  if (made[0]?.[0] !== ENTRY) {
    throw new Error(`deno bundle made no ${ENTRY}, but ${[...output.keys()].join(", ")}`);
  }
  return new Map(made);
}

/**
 * Names for the files, the entry first. The bundler's own carry a hash that depends on where the sources lie; these depend on what is in the files.
 * `.mjs` is a module whatever a package.json in a folder above says.
 */
function shippedNames(output: ReadonlyMap<string, string>): Map<string, string> {
  const stem = (name: string) => name.replace(/(-[A-Z0-9]{8})?\.js$/, "");
  const blank = (text: string) => {
    for (const name of output.keys()) text = text.replaceAll(name, stem(name));
    return text;
  };
  const order = [...output].map(([name, text]) => ({ name, key: `${stem(name)}\n${blank(text)}` }))
    .filter(({ name }) => name !== "main.js")
    .sort((one, other) => one.key < other.key ? -1 : 1);
  const chunks = order.map(({ name }, index): [string, string] => [
    name,
    `${stem(name)}-${index + 1}.mjs`,
  ]);
  return new Map([...(output.has("main.js") ? [["main.js", ENTRY] as const] : []), ...chunks]);
}

/** Deno reads and parses at its start whatever an `import()` names in a literal; behind a function it waits for the call. */
function withImports(text: string, names: ReadonlyMap<string, string>): string {
  for (const [name, shipped] of names) {
    text = text.replaceAll(`import("./${name}")`, `import((()=>"./${shipped}")())`)
      .replaceAll(`"./${name}"`, `"./${shipped}"`);
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
