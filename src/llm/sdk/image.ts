/**
 * Images of a tool result that a provider takes as images.
 *
 * A provider refuses a request for ever because of one image that it can't read, so the type is read from the image itself, and what isn't sound or is too large stays a line of text.
 */
import { isJsonObject, type Json } from "../../base/json.ts";

export interface NativeImage {
  mediaType: string;
  /** Base64. */
  data: string;
}

/** The smallest limit that a provider has for one image, in characters of base64. */
export const IMAGE_CHARS_MAX = 5 * 1024 * 1024;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** First bytes of each kind, as Latin-1 text; a `.` stands for any byte. */
const KINDS: readonly (readonly [mediaType: string, start: RegExp])[] = [
  ["image/png", /^\x89PNG\r\n\x1a\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

/** The images among MCP content blocks whose type is one of `accepted`. */
export function imagesIn(content: readonly Json[], accepted: readonly string[]): NativeImage[] {
  if (accepted.length === 0) return [];
  const images: NativeImage[] = [];
  for (const block of content) {
    if (!isJsonObject(block) || block.type !== "image" || typeof block.data !== "string") continue;
    const mediaType = mediaTypeOf(block.data);
    if (mediaType === undefined || !accepted.includes(mediaType)) continue;
    images.push({ mediaType, data: block.data });
  }
  return images;
}

function mediaTypeOf(data: string): string | undefined {
  if (data.length > IMAGE_CHARS_MAX || data.length % 4 !== 0 || !BASE64.test(data)) {
    return undefined;
  }
  const start = atob(data.slice(0, 16));
  return KINDS.find(([, pattern]) => pattern.test(start))?.[0];
}
