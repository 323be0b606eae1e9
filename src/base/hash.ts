/**
 * Checksums and hashes without their price at the start: Node's modules for them take longer to load than a small program takes to run, so they are loaded at the first use that is worth it.
 */

/** Bytes that are summed in plain code before the native sum is loaded. */
const PLAIN_BYTES_MAX = 1 << 20;
const POLYNOMIAL = 0xedb88320;

type NodeCrypto = typeof import("node:crypto");
type NodeZlib = typeof import("node:zlib");

let plainBytes = 0;
let native: NodeZlib["crc32"] | undefined;
let table: Uint32Array | undefined;

/** A SHA-256 to be fed. */
export function newSha256(): ReturnType<NodeCrypto["createHash"]> {
  const crypto: NodeCrypto = globalThis.process.getBuiltinModule("node:crypto");
  return crypto.createHash("sha256");
}

/** CRC-32 as in zip files, from 0 to 2^32 − 1. */
export function crc32(bytes: Uint8Array): number {
  if (native === undefined && plainBytes + bytes.length <= PLAIN_BYTES_MAX) {
    plainBytes += bytes.length;
    return plainCrc32(bytes);
  }
  if (native === undefined) {
    const zlib: NodeZlib = globalThis.process.getBuiltinModule("node:zlib");
    native = zlib.crc32;
  }
  return native(bytes);
}

/** The same sum, always in plain code. */
export function plainCrc32(bytes: Uint8Array): number {
  table ??= crcTable();
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ (table[(sum ^ byte) & 0xff] ?? 0);
  return (sum ^ 0xffffffff) >>> 0;
}

function crcTable(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit += 1) {
      value = (value & 1) === 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
    }
    return value;
  });
}
