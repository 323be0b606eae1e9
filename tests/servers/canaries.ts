/** Canaries: values that must come up nowhere, and a search for them in whatever form they may have taken on. */
import assert from "node:assert/strict";

/** Characters of a piece of base64 that is taken for part of a canary. */
const PIECE_CHARS = 16;

/** Fails where `text` holds one of `canaries`, by name: plain, JSON-escaped, percent-encoded (partly, too), or as base64 of either alphabet. */
export function assertNoCanary(
  canaries: { readonly [name: string]: string },
  where: string,
  text: string,
): void {
  const readings = [
    text,
    percentDecoded(text),
    unescaped(text),
    text.replaceAll("-", "+").replaceAll("_", "/"),
  ];
  for (const [name, canary] of Object.entries(canaries)) {
    for (const form of [canary, ...base64Pieces(canary)]) {
      for (const reading of readings) {
        const at = reading.indexOf(form);
        assert.ok(
          at < 0,
          `${where} holds ${name}: ${reading.slice(Math.max(0, at - 300), at + 100)}`,
        );
      }
    }
  }
}

function percentDecoded(text: string): string {
  return text.replaceAll(
    /%([0-9a-f]{2})/gi,
    (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Without what escapes quotes, however often. */
function unescaped(text: string): string {
  return text.replaceAll("\\", "");
}

/** The middle of what base64 makes of it, wherever it begins in a group of three. */
function base64Pieces(canary: string): string[] {
  return ["", "x", "xx"].map((lead) => {
    const text = btoa(lead + canary);
    const from = lead === "" ? 0 : 4;
    return text.slice(from, from + PIECE_CHARS);
  });
}
