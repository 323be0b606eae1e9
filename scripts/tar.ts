/**
 * Writes a tar archive (ustar) whose bytes depend on nothing but names, modes and contents: no times, no owners.
 *
 * Just what the self-extracting file needs: plain files with short ASCII names in one folder.
 */

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;

/** A file of the archive. */
export interface TarFile {
  /** ASCII, at most 100 characters, no folder. */
  name: string;
  content: Uint8Array;
  executable?: boolean;
}

/** The archive, files in the order given. Throws an Error for a name that ustar can't hold as it is. */
export function tar(files: readonly TarFile[]): Uint8Array<ArrayBuffer> {
  const blocks = files.map(({ content }) => 1 + Math.ceil(content.length / BLOCK_BYTES));
  // Two empty blocks end an archive.
  const archive = new Uint8Array((blocks.reduce((sum, each) => sum + each, 0) + 2) * BLOCK_BYTES);
  let at = 0;
  for (const [index, file] of files.entries()) {
    archive.set(header(file), at);
    archive.set(file.content, at + BLOCK_BYTES);
    at += (blocks[index] ?? 0) * BLOCK_BYTES;
  }
  return archive;
}

function header(file: TarFile): Uint8Array {
  if (!/^[\x21-\x2e\x30-\x7e]+$/.test(file.name) || file.name.length > NAME_BYTES_MAX) {
    throw new Error(`Cannot put a file named ${JSON.stringify(file.name)} into the archive`);
  }
  const block = new Uint8Array(BLOCK_BYTES);
  const encoder = new TextEncoder();
  const put = (at: number, text: string) => block.set(encoder.encode(text), at);
  const octal = (at: number, width: number, value: number) =>
    put(at, value.toString(8).padStart(width - 1, "0"));
  put(0, file.name);
  octal(100, 8, file.executable ? 0o755 : 0o644);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, file.content.length);
  octal(136, 12, 0);
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar\u000000");
  // The checksum counts its own field as spaces, and is written last.
  put(148, `${block.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\u0000 `);
  return block;
}
