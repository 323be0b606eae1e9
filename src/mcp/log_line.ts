/**
 * A line of a server's log: what it said on stderr as it is, and marked what came from elsewhere: noise on its stdout, and notes of rnix itself.
 *
 * A line of stderr that looks marked gets a mark of its own, so that a server can't write in another's name.
 */

/** Who a line is of. */
export type LogSource = "stderr" | "stdout" | "rnix";

const MARKED = /^\[(stderr|stdout|rnix)\] /;

/** The line as it is kept. */
export function keptLine(text: string, source: LogSource): string {
  return source !== "stderr" || MARKED.test(text) ? `[${source}] ${text}` : text;
}

/** A kept line, read again. */
export function readLogLine(line: string): { source: LogSource; text: string } {
  const [mark = "", source] = MARKED.exec(line) ?? [];
  const text = line.slice(mark.length);
  return source === "stdout" || source === "rnix" ? { source, text } : { source: "stderr", text };
}
