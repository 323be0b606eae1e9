/** The text of `pids.jsonl`: one JSON line per pid given out, rising. */

/** A pid and the run that had it. */
export interface PidLine {
  pid: number;
  run: string;
}

/** What a list of pids says. */
export interface PidList {
  /** All lines that can be read, as far as they rise. */
  lines: PidLine[];
  /** Whether every line can be read and the pids rise; a torn last line, which was never given out, is left aside. */
  isWhole: boolean;
  /** Bytes up to the end of the last line that can be read. */
  wholeBytes: number;
  /** The last line that can be read has no newline. */
  lacksNewline: boolean;
}

const NEWLINE = 10;

/** Reads a list, or the rest of one whose last pid was `last`. Empty lines mean nothing. */
export function parsePids(bytes: Uint8Array, last = 0): PidList {
  const list: PidList = { lines: [], isWhole: true, wholeBytes: 0, lacksNewline: false };
  const decoder = new TextDecoder();
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, start);
    const text = decoder.decode(bytes.subarray(start, end < 0 ? bytes.length : end));
    const line = parseLine(text);
    const next = end < 0 ? bytes.length : end + 1;
    if (line !== undefined && line.pid > Math.max(last, lastOf(list.lines))) list.lines.push(line);
    else if (line !== undefined || (end >= 0 && text.trim() !== "")) list.isWhole = false;
    if (line !== undefined || end >= 0) list.wholeBytes = next;
    list.lacksNewline = line !== undefined && end < 0;
    start = next;
  }
  return list;
}

/** Lines as text. */
export function pidLines(lines: readonly PidLine[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** The last pid; 0 where there is none. */
export function lastOf(lines: readonly PidLine[]): number {
  return lines.at(-1)?.pid ?? 0;
}

function parseLine(text: string): PidLine | undefined {
  try {
    const { pid, run } = JSON.parse(text);
    const isPid = Number.isSafeInteger(pid) && pid > 0;
    return isPid && typeof run === "string" ? { pid, run } : undefined;
  } catch {
    return undefined;
  }
}
