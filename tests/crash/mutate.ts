/** Runs the harness on a copy of the tree in which one text is changed. */
import type { Mutant } from "./mutant_list.ts";

/** What the harness needs of the tree. */
const FOLDERS = ["src", "tests/crash", "tests/doubles"] as const;
const FILES = ["deno.json", "deno.lock"] as const;
const LIMIT_MS = 900_000;

export interface MutantReport {
  /** Places with at least one broken promise, and all that were tried; undefined where the harness itself broke down. */
  broken: number | undefined;
  places: number | undefined;
  /** Broken promises by suite. */
  suites: { [suite: string]: number };
  exitCode: number;
  output: string;
}

export interface HarnessArguments {
  every: number;
  /** Part of a scenario's name; one that begins with "-" leaves those out. */
  scenario: string;
  suite: string;
}

/** A copy of the tree below `root` in a temporary folder. The caller removes it. */
export async function copyTree(root: string): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "rnix-mutant-" });
  for (const folder of FOLDERS) await copyFolder(`${root}/${folder}`, `${copy}/${folder}`);
  for (const file of FILES) await Deno.copyFile(`${root}/${file}`, `${copy}/${file}`);
  return copy;
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else if (!name.endsWith("_test.ts")) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}

/** Runs the harness on `tree` with the mutant in it, and takes the mutant out again. Throws when its text isn't there exactly once. */
export async function runMutant(
  tree: string,
  mutant: Mutant,
  args: HarnessArguments,
): Promise<MutantReport> {
  const path = `${tree}/${mutant.file}`;
  const text = await Deno.readTextFile(path);
  const parts = text.split(mutant.from);
  if (parts.length !== 2) {
    throw new Error(
      `Mutant "${mutant.name}": its text is in ${mutant.file} ${parts.length - 1} times`,
    );
  }
  await Deno.writeTextFile(path, parts.join(mutant.to));
  try {
    if (mutant.schedules !== undefined) return await runSchedules(tree, mutant.schedules);
    const { suite = args.suite, scenario = args.scenario } = mutant;
    return await runHarness(tree, { ...args, suite, scenario });
  } finally {
    await Deno.writeTextFile(path, text);
  }
}

async function runHarness(
  tree: string,
  { every, scenario, suite }: HarnessArguments,
): Promise<MutantReport> {
  const { code, output } = await run(tree, ["main.ts", String(every), scenario, suite]);
  return { ...readOutput(output), exitCode: code, output };
}

async function runSchedules(tree: string, count: number): Promise<MutantReport> {
  const { code, output } = await run(tree, ["schedules.ts", "--count", String(count)]);
  const total = /^(\d+) schedules, .* (\d+) with violations/m.exec(output);
  const broken = total === null ? undefined : Number(total[2]);
  return {
    places: total === null ? undefined : Number(total[1]),
    broken,
    suites: { "random schedules": broken ?? 0 },
    exitCode: code,
    output,
  };
}

async function run(tree: string, [program = "", ...args]: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    // A mutant needn't have the right types, only to run.
    args: [
      ...["run", "--no-prompt", "--no-check", "--allow-read", "--allow-env"],
      `tests/crash/${program}`,
      ...args,
    ],
    cwd: tree,
    env: { NO_COLOR: "1" },
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const decoder = new TextDecoder();
  return { code, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

function readOutput(output: string): Pick<MutantReport, "broken" | "places" | "suites"> {
  const suites: { [suite: string]: number } = {};
  for (const [, suite = "", count] of output.matchAll(/^(.+?) \| .*?(\d+) violations, /gm)) {
    if (Number(count) > 0) suites[suite] = (suites[suite] ?? 0) + Number(count);
  }
  const total = /^total: (\d+) points, \d+ trials, (\d+) points with violations/m.exec(output);
  return {
    places: total === null ? undefined : Number(total[1]),
    broken: total === null ? undefined : Number(total[2]),
    suites,
  };
}
