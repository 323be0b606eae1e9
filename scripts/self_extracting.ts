/**
 * The self-extracting form of the executable: `stub.sh` with its blanks filled in, and a gzipped archive of Deno and the program behind it.
 *
 * The same input gives the same bytes; the folder it unpacks itself to is named after the archive's hash.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { tar, type TarFile } from "./tar.ts";

const STUB = new URL("stub.sh", import.meta.url);
const HASH_DIGITS = 16;
/** As wide as any number of bytes that comes in its place. */
const BLANK = "000000";

/** What is packed. */
export interface Packing {
  /** Of rnix. */
  version: string;
  denoVersion: string;
  /** The machine that can run it, as `uname -sm` says it. */
  system: string;
  /** The executable of Deno. */
  deno: Uint8Array;
  /** Modules by file name, `main.mjs` among them. */
  program: ReadonlyMap<string, string>;
  /** Flags of `deno run`, none of which has a space in it. */
  flags: readonly string[];
}

/** The bytes of the executable. Throws an Error for names that the archive or the stub can't hold. */
export function selfExtracting(packing: Packing): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const files: TarFile[] = [
    { name: "deno", content: packing.deno, executable: true },
    ...[...packing.program].map(([name, text]) => ({ name, content: encoder.encode(text) })),
  ];
  const archive = tar(files);
  const stub = filledStub({
    VERSION: packing.version,
    DENO: packing.denoVersion,
    SYSTEM: packing.system,
    FILES: files.map(({ name }) => name).join(" "),
    HASH: createHash("sha256").update(archive).digest("hex").slice(0, HASH_DIGITS),
    MEGABYTES: String(Math.ceil(archive.length / 1e6)),
    FLAGS: packing.flags.join(" "),
  });
  const packed = gzipSync(archive);
  const executable = new Uint8Array(stub.length + packed.length);
  executable.set(stub);
  executable.set(packed, stub.length);
  return executable;
}

function filledStub(values: { [name: string]: string }): Uint8Array {
  const template = Deno.readTextFileSync(STUB);
  const filled = (firstByte: string) =>
    new TextEncoder().encode(template.replaceAll(/@([A-Z_]+)@/g, (blank, name) => {
      const value = name === "FIRST_BYTE" ? firstByte : values[name];
      if (value === undefined) throw new Error(`scripts/stub.sh has a blank ${blank}`);
      return value;
    }));
  // The number is part of what it counts.
  const length = filled(BLANK).length;
  return filled(String(length + 1).padEnd(BLANK.length));
}

/** This machine, as `uname -sm` says it. */
export function systemName(build: { os: string; arch: string } = Deno.build): string {
  const { os, arch } = build;
  return os === "darwin" ? `Darwin ${arch === "aarch64" ? "arm64" : arch}` : `Linux ${arch}`;
}
