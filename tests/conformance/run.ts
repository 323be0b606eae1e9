/**
 * `run.ts [part]`: the client side of the official MCP conformance suite against `rnix mcp connect`, authorization aside. Prints a table; fails if a required scenario doesn't pass.
 *
 * The suite and the Node that it needs are installed by npm into the user's cache folder, so this needs the registry once. The suite calls a scenario passed in which nothing was seen; here one counts only if a check of its own succeeded.
 */
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { type Check, checkedScenario, requiredScenarios, type Verdict } from "./verdict.ts";

const SUITE = "@modelcontextprotocol/conformance";
const PACKAGES = [`${SUITE}@0.2.0-alpha.12`, "node@22.23.3"];
const REVISIONS = ["2025-11-25", "2026-07-28"];
const SCENARIO_MS_MAX = 60_000;

/** Where the suite is, installed if need be. */
async function installed(): Promise<string> {
  const cache = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const folder = `${cache}/rnix-conformance`;
  await Deno.mkdir(folder, { recursive: true });
  const args = ["install", "--prefix", folder, "--no-audit", "--no-fund", ...PACKAGES];
  const { success } = await new Deno.Command("npm", { args, stdout: "null" }).output();
  if (!success) throw new Error(`npm ${args.join(" ")} failed`);
  return `${folder}/node_modules`;
}

/** What a shell takes as one word. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

interface Suite {
  modules: string;
  /** Holds rnix's state and what the suite saw. */
  folder: string;
}

async function runScenario(
  { modules, folder }: Suite,
  revision: string,
  scenario: string,
): Promise<Verdict> {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const command = [
    ...[Deno.execPath(), "run", "--quiet", "--no-prompt", "--allow-run", "--allow-env"],
    ...[here("./adapter.ts"), "sh", here("../../scripts/rnix")],
  ];
  const output = `${folder}/${revision}-${scenario}`;
  const { code, stdout, stderr } = await new Deno.Command(`${modules}/.bin/node`, {
    args: [
      ...[`${modules}/${SUITE}/dist/index.js`, "client", "--scenario", scenario],
      ...["--spec-version", revision, "--output-dir", output],
      ...["--command", command.map(quoted).join(" ")],
    ],
    env: { RNIX_HOME: `${folder}/home` },
    signal: AbortSignal.timeout(SCENARIO_MS_MAX),
  }).output();
  const verdict = checkedScenario(code, await checksIn(output));
  if (verdict.passed) return verdict;
  const text = new TextDecoder();
  return { ...verdict, output: text.decode(stdout) + text.decode(stderr) };
}

/** What the suite saw: one folder for the one scenario, named by the time. */
async function checksIn(output: string): Promise<Check[]> {
  for await (const { name } of Deno.readDir(output)) {
    return JSON.parse(await Deno.readTextFile(`${output}/${name}/checks.json`));
  }
  return [];
}

async function main(part: string): Promise<boolean> {
  const modules = await installed();
  const folder = await Deno.makeTempDir({ prefix: "rnix-conformance-" });
  let allPassed = true;
  try {
    for (const revision of REVISIONS) {
      const file = await Deno.readTextFile(`${modules}/${SUITE}/requirements/${revision}.yaml`);
      for (const { scenario, required } of requiredScenarios(parse(file))) {
        if (!`${revision} ${scenario}`.includes(part)) continue;
        const { passed, summary, output } = await runScenario(
          { modules, folder },
          revision,
          scenario,
        );
        const word = passed ? "passed" : required ? "FAILED" : "failed (not required)";
        console.log(`${revision}  ${scenario.padEnd(36)}  ${word}  ${summary}`);
        if (output !== undefined) console.log(output.slice(-4_000));
        allPassed &&= passed || !required;
      }
    }
  } finally {
    await stopDaemon(folder);
    await Deno.remove(folder, { recursive: true });
  }
  return allPassed;
}

async function stopDaemon(folder: string): Promise<void> {
  await new Deno.Command("sh", {
    args: [fileURLToPath(new URL("../../scripts/rnix", import.meta.url)), "daemon", "stop"],
    env: { RNIX_HOME: `${folder}/home` },
    stdout: "null",
  }).output();
}

if (import.meta.main && !await main(Deno.args[0] ?? "")) Deno.exit(1);
