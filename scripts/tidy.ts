/**
 * Whole-tree rules: no import cycle (type and dynamic imports count), no file that nothing reaches, no file past its length,
 * no third-party library outside of its folders, no rule of the house switched off in a comment.
 *
 * `deno run --allow-read --allow-run scripts/tidy.ts [root]` prints one complaint a line and exits 1 if there is any.
 */
import { LIBRARY_FOLDERS } from "./layers.ts";

const FILE_LINES_MAX = 600;
const SOURCE_FOLDERS = ["src", "tests", "scripts"];
/** Files started as programs of their own, so that nothing needs to import them. */
const PROGRAMS =
  /^(main\.ts|scripts\/[^/]+\.ts|tests\/(servers|bench)\/.+\.ts|tests\/.+\/main\.ts|.+_test\.ts)$/;
/** The same for whatever a person or a test may start. */
function isProgram(path: string, text: string): boolean {
  return PROGRAMS.test(path) || path.startsWith("tests/") && text.includes("import.meta.main");
}

/** Lint rules that a comment may not switch off. */
const FIRM_RULES = /deno-lint-ignore(-file)?\b.*\b(no-explicit-any|ban-ts-comment|rnix\/)/;

/** The tree as the rules see it; paths are relative to its root. */
export interface Tree {
  /** Text of every TypeScript file. */
  files: Map<string, string>;
  /** What a file imports: files of the tree, and libraries by their npm names. */
  imports: Map<string, { files: string[]; libraries: string[] }>;
  /** Imports that don't load. */
  broken: string[];
}

/** All complaints about a tree, in a fixed order. */
export function complaintsOf(tree: Tree): string[] {
  const cycle = findCycle(tree);
  return [
    ...tree.broken,
    ...(cycle ? [`import cycle: ${cycle.join(" -> ")}`] : []),
    ...unreached(tree),
    ...tooLong(tree),
    ...strayLibraries(tree),
    ...switchedOff(tree),
  ];
}

/** The first cycle met, its first file repeated at the end. */
function findCycle(tree: Tree): string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    path.push(file);
    for (const next of tree.imports.get(file)?.files ?? []) {
      const found = visit(next);
      if (found) return found;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of [...tree.files.keys()].sort()) {
    const found = visit(file);
    if (found) return found;
  }
  return undefined;
}

/** A file's own test doesn't keep it alive: it must be reached from another program. */
function unreached(tree: Tree): string[] {
  const reached = new Set<string>();
  const visit = (file: string) => {
    if (reached.has(file)) return;
    reached.add(file);
    for (const next of tree.imports.get(file)?.files ?? []) visit(next);
  };
  for (const [program, text] of tree.files) {
    if (!isProgram(program, text)) continue;
    const own = program.replace(/_test\.ts$/, ".ts");
    reached.add(program);
    for (const next of tree.imports.get(program)?.files ?? []) {
      if (next !== own || own === program) visit(next);
    }
  }
  return [...tree.files.keys()].filter((file) => !reached.has(file)).sort()
    .map((file) => `${file}: nothing reaches it from main.ts or from another file's test`);
}

function tooLong(tree: Tree): string[] {
  return [...tree.files].map(([file, text]) => ({ file, lines: text.trimEnd().split("\n").length }))
    .filter(({ lines }) => lines > FILE_LINES_MAX)
    .map(({ file, lines }) => `${file}: ${lines} lines, at most ${FILE_LINES_MAX}`);
}

function strayLibraries(tree: Tree): string[] {
  const complaints: string[] = [];
  for (const [file, { libraries }] of tree.imports) {
    const folder = file.match(/^src\/([^/]+)\//)?.[1];
    if (file !== "main.ts" && folder === undefined || file.endsWith("_test.ts")) continue;
    for (const library of new Set(libraries)) {
      const folders = LIBRARY_FOLDERS[library] ?? [];
      if (folder !== undefined && folders.includes(folder)) continue;
      const where = folders.map((each) => `src/${each}`).join(", ") || "tests";
      complaints.push(`${file}: "${library}" belongs to ${where}`);
    }
  }
  return complaints;
}

function switchedOff(tree: Tree): string[] {
  return [...tree.files].filter(([file]) => !file.startsWith("scripts/")).flatMap(([file, text]) =>
    text.split("\n").flatMap((line, index) => {
      const rule = line.match(FIRM_RULES)?.[2];
      return rule === undefined ? [] : [`${file}:${index + 1}: "${rule}" can't be switched off`];
    })
  );
}

interface InfoModule {
  specifier: string;
  error?: string;
  dependencies?: { code?: { specifier?: string }; type?: { specifier?: string } }[];
}

/** Reads the tree under `root` (absolute, with a final slash) and its imports as Deno resolves them. */
export async function readTree(root: string): Promise<Tree> {
  const files = new Map<string, string>();
  const read = (path: string) => files.set(path, Deno.readTextFileSync(root + path));
  read("main.ts");
  for (const folder of SOURCE_FOLDERS) for (const path of sources(root, folder)) read(path);
  const tree: Tree = { files, imports: new Map(), broken: [] };
  const base = `file://${root}`;
  for (const module of await moduleGraph(root, [...files.keys()].map((path) => base + path))) {
    if (!module.specifier.startsWith(base)) continue;
    const path = module.specifier.slice(base.length);
    if (module.error !== undefined) tree.broken.push(`${path}: ${module.error}`);
    if (!files.has(path)) continue;
    const targets = (module.dependencies ?? []).flatMap((each) => [
      each.code?.specifier,
      each.type?.specifier,
    ]).filter((target) => target !== undefined);
    tree.imports.set(path, {
      files: targets.filter((target) => target.startsWith(base))
        .map((target) => target.slice(base.length)).filter((target) => files.has(target)),
      libraries: targets.map(libraryOf).filter((library) => library !== undefined),
    });
  }
  return tree;
}

/** `npm:/@scope/name@1.0.0/sub` → `@scope/name`. */
function libraryOf(specifier: string): string | undefined {
  return specifier.match(/^npm:\/?((?:@[^/]+\/)?[^@/]+)/)?.[1];
}

async function moduleGraph(root: string, roots: string[]): Promise<InfoModule[]> {
  const text = roots.map((each) => `import ${JSON.stringify(each)};`).join("");
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", `data:application/typescript,${encodeURIComponent(text)}`],
    cwd: root,
  }).output();
  if (code !== 0) throw new Error(`deno info failed: ${new TextDecoder().decode(stderr)}`);
  const info: { modules: InfoModule[] } = JSON.parse(new TextDecoder().decode(stdout));
  return info.modules;
}

function* sources(root: string, folder: string): Generator<string> {
  for (const entry of Deno.readDirSync(root + folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) yield* sources(root, path);
    else if (entry.name.endsWith(".ts")) yield path;
  }
}

if (import.meta.main) {
  const complaints = complaintsOf(await readTree(`${Deno.realPathSync(Deno.args[0] ?? ".")}/`));
  for (const complaint of complaints) console.error(complaint);
  Deno.exit(complaints.length > 0 ? 1 : 0);
}
