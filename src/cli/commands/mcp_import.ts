/** `rnix mcp import`: servers from another program's configuration into `mcp.yaml`. */
import { EXIT_FAILED, EXIT_USAGE } from "../../base/exit.ts";
import { SysError } from "../../base/errors.ts";
import { resolvePaths, shownFrom, withTilde } from "../../base/paths.ts";
import { join, resolve } from "../../base/posix_path.ts";
import type { ImportedServer, ImportReport } from "../../manifest/import/import_servers.ts";
import { counted } from "../amounts.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Invocation, Outcome } from "../command.ts";
import { hasSwitch, valueOf } from "../flag_values.ts";
import { oneLine } from "../plain_text.ts";

const FORMATS = ["json", "toml"] as const;
type Format = (typeof FORMATS)[number];

/** Configurations are kilobytes. */
const CHARS_MAX = 4 * 1024 * 1024;

export const mcpImport: Command = {
  name: "mcp import",
  summary: "Take MCP servers over from another program",
  positionals: [{ name: "file", kind: "file", optional: true }],
  flags: [
    {
      name: "format",
      value: "FORMAT",
      choices: FORMATS,
      summary: "json or toml, where the file doesn't say it",
    },
    { name: "project", summary: "Into .rnix/mcp.yaml of the project, not into your own" },
    { name: "dry-run", summary: "Print the YAML and write nothing" },
    { name: "force", summary: "Replace servers of the same name" },
  ],
  details:
    `Reads JSON with mcpServers, servers or context_servers (comments are fine) and TOML with mcp_servers, from <file>, or from stdin where it is - or left out. Comments and other servers of mcp.yaml stay.
Exits 0 when every server was carried over, 1 when one could not be, 2 when the input or mcp.yaml has mistakes.`,
  async run(invocation, context) {
    const [{ importServers }, { disk }] = await Promise.all([
      import("../../manifest/import/import_servers.ts"),
      import("../../base/disk.ts"),
    ]);
    const format = formatOf(invocation);
    const { text, file } = await sourceOf(invocation, context);
    const target = await targetOf(hasSwitch(invocation, "project"), context);
    const dryRun = hasSwitch(invocation, "dry-run");
    const report = await importServers(disk, {
      text,
      file,
      ...format === undefined ? {} : { format },
      target,
      overwrite: hasSwitch(invocation, "force"),
      dryRun,
    });
    return outcomeOf(report, { dryRun, path: target.path, shown: target.shown });
  },
};

/** As it was said, else as the name of the file says it. */
function formatOf(invocation: Invocation): Format | undefined {
  const given = valueOf(invocation, "format");
  const known = FORMATS.find((format) => format === given);
  if (given !== undefined && known === undefined) {
    throw usageError(`"--format" doesn't know "${given}"`, `one of: ${FORMATS.join(", ")}`);
  }
  const [, extension] = /\.(toml|json)c?$/.exec(invocation.words[0] ?? "") ?? [];
  return known ?? FORMATS.find((format) => format === extension);
}

async function sourceOf(
  { words: [word] }: Invocation,
  { world }: Context,
): Promise<{ text: string; file: string }> {
  if (word === "-" || (word === undefined && !world.stdin.isTerminal)) {
    return { text: await world.stdin.rest(CHARS_MAX), file: "stdin" };
  }
  if (word === undefined) {
    throw usageError("Nothing to import", "give a file, or pipe one in");
  }
  const [{ readSourceText }, { disk }] = await Promise.all([
    import("../../manifest/source_text.ts"),
    import("../../base/disk.ts"),
  ]);
  const source = await readSourceText(disk, resolve(world.cwd, word), CHARS_MAX);
  if (source.kind === "text") return { text: source.text, file: word };
  const [code, message] = source.kind === "absent"
    ? ["NOT_FOUND", `Nothing at "${word}"`] as const
    : ["INVALID", `"${word}" can't be imported: ${source.message}`] as const;
  throw new SysError(code, message, { exitCode: EXIT_USAGE });
}

/** The user's `mcp.yaml`, or the project's: in the nearest `.rnix/`, else in one of the working folder. */
async function targetOf(ofProject: boolean, { world, env }: Context) {
  const paths = resolvePaths(env, world.uid);
  const home = env["HOME"];
  if (!ofProject) {
    const path = join(paths.config, "mcp.yaml");
    return { path, shown: withTilde(path, home) };
  }
  const [{ findProjectFolder, PROJECT_FOLDER }, { TrustStore }, { disk }] = await Promise.all([
    import("../../manifest/project_folder.ts"),
    import("../../manifest/trust.ts"),
    import("../../base/disk.ts"),
  ]);
  const search = { storage: disk, cwd: world.cwd, home, uid: world.uid };
  const folder = await findProjectFolder(search);
  if (folder?.refused !== undefined) {
    throw new SysError("PERMISSION", folder.refused, { exitCode: EXIT_USAGE });
  }
  const path = join(folder?.path ?? join(world.cwd, PROJECT_FOLDER), "mcp.yaml");
  const trust = new TrustStore(disk, paths.state);
  return { path, shown: shownFrom(world.cwd, path), trust };
}

function outcomeOf(
  report: ImportReport,
  { dryRun, path, shown }: { dryRun: boolean; path: string; shown: string },
): Outcome {
  const { servers, notes, yaml, untrusted } = report;
  const skipped = servers.filter(({ outcome }) => outcome === "skipped").length;
  const lines = servers.map((server) => lineOf(server, shown, dryRun));
  const remarks = notes.map(({ server, message }) => oneLine(`note: ${server}: ${message}`));
  if (untrusted) {
    remarks.push(
      `note: ${shown} has servers that you haven't agreed to; read it, then run with --trust`,
    );
  }
  return {
    exitCode: skipped === 0 ? 0 : EXIT_FAILED,
    data: { path, dry_run: dryRun, servers, notes, ...dryRun ? { yaml } : {} },
    text: dryRun ? yaml : lines.join("\n"),
    untrusted: true,
    remarks: dryRun ? [...lines, ...remarks] : remarks,
    ...skipped === 0 ? {} : {
      error: {
        code: "INVALID",
        message: `${counted(skipped, "server")} could not be carried over`,
      },
      errorTold: true,
    },
  };
}

/** What was done, or in a dry run what would be. */
function lineOf(
  { name, outcome, reasons = [] }: ImportedServer,
  shown: string,
  dryRun: boolean,
): string {
  const done = (past: string, would: string) => dryRun ? `would ${would}` : past;
  switch (outcome) {
    case "added":
      return oneLine(`[import] ${done("added", "add")} ${name} to ${shown}`);
    case "replaced":
      return oneLine(`[import] ${done("replaced", "replace")} ${name} in ${shown}`);
    case "kept":
      return oneLine(
        `[import] ${done("kept", "keep")} ${name} of ${shown}; --force replaces it`,
      );
    case "skipped":
      return oneLine(`[import] ${done("skipped", "skip")} ${name}: ${reasons.join("; ")}`);
  }
}
