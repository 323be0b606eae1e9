/** `rnix journal export`: a run as one document, to stdout or into a file. */
import { resolve } from "../../base/posix_path.ts";
import type { ExportFormat } from "../../base/upkeep.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Outcome } from "../command.ts";
import { valueOf } from "../flag_values.ts";

const FORMATS: readonly ExportFormat[] = ["json", "markdown"];

export const journalExport: Command = {
  name: "journal export",
  summary: "Write a run as JSON, or as a transcript to read",
  positionals: [{ name: "run", kind: "run" }],
  flags: [
    { name: "format", value: "FORMAT", summary: "json (default) or markdown", choices: FORMATS },
    { name: "output", short: "o", value: "FILE", summary: "Into a file that only you can read" },
  ],
  details:
    `Literal secrets of the manifest are redacted and contents of sensitive tools masked; all else that the
run did is in it. What is damaged is told where it stood. With --json the document is the data of the
envelope.`,
  async run(invocation, context) {
    const format = formatOf(valueOf(invocation, "format") ?? "json");
    const output = valueOf(invocation, "output");
    if (output === undefined && context.json && format !== "json") {
      throw usageError('"--json" prints JSON alone', 'give "-o FILE" for the transcript');
    }
    const upkeep = await context.world.upkeep(context.env);
    const pieces = upkeep.exportJournal(invocation.words[0] ?? "", format);
    if (output === undefined) return await toStdout(pieces, context);
    return await toFile(pieces, resolve(context.world.cwd, output), format);
  },
};

function formatOf(text: string): ExportFormat {
  const format = FORMATS.find((each) => each === text);
  if (format !== undefined) return format;
  throw usageError(`"--format" doesn't know "${text}"`, `one of: ${FORMATS.join(", ")}`);
}

/** Each piece waits for its reader. What fails before the first piece is an error like any other. */
async function toStdout(pieces: AsyncIterable<string>, context: Context): Promise<Outcome> {
  const { stdout } = context.world;
  let isFirst = true;
  for await (const piece of pieces) {
    if (isFirst && context.json) stdout.write(`{"ok":true,"data":`);
    isFirst = false;
    stdout.write(piece);
    await stdout.flush();
  }
  if (context.json) stdout.write("}\n");
  return { exitCode: 0, streamed: true };
}

async function toFile(
  pieces: AsyncIterable<string>,
  path: string,
  format: ExportFormat,
): Promise<Outcome> {
  const [{ writeStatePieces }, { disk }] = await Promise.all([
    import("../../base/state_file.ts"),
    import("../../base/disk.ts"),
  ]);
  await writeStatePieces(disk, path, pieces);
  return { exitCode: 0, data: { file: path, format }, text: path, untrusted: true };
}
