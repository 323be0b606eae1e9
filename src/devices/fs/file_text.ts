/** Text files as the tools read and write them: whole, strict UTF-8, replaced in one step. */
import { disk } from "../../base/disk.ts";
import { dirname } from "../../base/posix_path.ts";
import { SysError } from "../../base/errors.ts";
import { writeStateFile } from "../../base/state_file.ts";
import { type Located, openLocated, refused } from "./working_folder.ts";

/** Largest file that a tool reads whole, bytes. */
export const FILE_BYTES_MAX = 16 * 1024 * 1024;
const NEW_FILE_MODE = 0o644;
const PERMISSION_BITS = 0o7777;
/** How much of a file tells whether it is text, bytes. */
export const LOOK_BYTES = 8192;

/** The bytes of a located file. Rejects with RESOURCE_EXHAUSTED over the limit. */
export async function readWhole(located: Located, bytesMax = FILE_BYTES_MAX): Promise<Uint8Array> {
  const file = await openLocated(located);
  try {
    const { size } = await file.stat();
    if (size > bytesMax) {
      throw refused(
        "RESOURCE_EXHAUSTED",
        located.shown,
        `It has ${size} bytes, more than the ${bytesMax} that are read at once`,
      );
    }
    const bytes = new Uint8Array(size);
    let at = 0;
    while (at < size) {
      const got = await file.read(bytes.subarray(at));
      if (got === null) break;
      at += got;
    }
    return bytes.subarray(0, at);
  } finally {
    file.close();
  }
}

/** The text of a located file. Rejects with INVALID where it isn't text. */
export async function readText(located: Located): Promise<string> {
  const bytes = await readWhole(located);
  if (looksBinary(bytes)) throw refused("INVALID", located.shown, "It is no text file");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refused("INVALID", located.shown, "It is not UTF-8 text");
  }
}

export function looksBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, LOOK_BYTES).includes(0);
}

/** Replaces a file whole or not at all; its permission bits stay. A second name of the old file keeps the old content. Gives what is to be said beside that it was done, empty as a rule; rejects only where it was not. */
export async function replaceFile(located: Located, text: string): Promise<string> {
  const mode = located.kind === "file"
    ? ((await Deno.lstat(located.path)).mode ?? NEW_FILE_MODE) & PERMISSION_BITS
    : NEW_FILE_MODE;
  try {
    await writeStateFile(disk, located.path, text.toWellFormed(), mode);
  } catch (thrown) {
    // Of what the disk says it isn't clear which file is meant.
    if (!(thrown instanceof SysError)) throw thrown;
    const { code, message, hint, syscall, device } = thrown;
    if (syscall === "Sync" && device === dirname(located.path)) {
      return ` (its folder can't be synced, so a power cut may undo it: ${message})`;
    }
    throw new SysError(code, `Cannot write "${located.shown}": ${message}`, {
      hint,
      cause: thrown,
    });
  }
  return "";
}

/** `1 line`, `2 lines`. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
