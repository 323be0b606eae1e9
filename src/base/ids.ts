/** Run ids (UUIDv7, RFC 9562), their short forms, and randomness as a part that is handed in. */

/** Fills `bytes` with random ones. */
export type RandomSource = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

export const systemRandom: RandomSource = (bytes) => crypto.getRandomValues(bytes);

/** Shortest reference to a run by part of its id. */
export const RUN_REF_CHARS_MIN = 4;
const SHORT_CHARS = 8;

/** A new UUIDv7: 48 bits of time, 74 random bits. */
export function newRunId(nowMs: number, random: RandomSource): string {
  const bytes = random(new Uint8Array(16));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, Math.floor(nowMs / 0x10000));
  view.setUint16(4, nowMs % 0x10000);
  view.setUint8(6, (view.getUint8(6) & 0x0f) | 0x70);
  view.setUint8(8, (view.getUint8(8) & 0x3f) | 0x80);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
    .join("-");
}

/** Last 8 hex digits, or as many more as needed to hold a letter (all digits would read as a pid). */
export function shortRunId(runId: string): string {
  const hex = runId.replaceAll("-", "");
  let length = SHORT_CHARS;
  while (length < hex.length && !/[a-f]/.test(hex.slice(-length))) length += 1;
  return hex.slice(-length);
}

/** A hint of the system, which says `rnix resume RUN`, with the name that can be typed. */
export function namingRun(hint: string, runId: string): string {
  return hint.replace(/\brnix ([a-z]+(?: [a-z]+)?) RUN\b/g, `rnix $1 ${shortRunId(runId)}`);
}

/** Whether `reference` (a whole id, or 4 or more characters with a letter that begin or end it) names this run. */
export function namesRun(reference: string, runId: string): boolean {
  const wanted = reference.toLowerCase();
  if (wanted === runId) return true;
  if (wanted.length < RUN_REF_CHARS_MIN || !/[a-f]/.test(wanted)) return false;
  const hex = runId.replaceAll("-", "");
  const plain = wanted.replaceAll("-", "");
  return hex.startsWith(plain) || hex.endsWith(plain);
}
