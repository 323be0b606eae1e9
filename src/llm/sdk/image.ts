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

/** How each kind begins, in bytes; what follows is of no matter. */
const KINDS: readonly (readonly [mediaType: string, start: readonly number[]])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
];
const RIFF = "RIFF";
const WEBP = "WEBP";

/** The images among MCP content blocks whose type is one of `accepted`. */
export function imagesIn(content: readonly Json[], accepted: readonly string[]): NativeImage[] {
  if (accepted.length === 0) return [];
  const images: NativeImage[] = [];
  for (const block of content) {
    const data = payloadOf(block);
    const mediaType = data === undefined ? undefined : mediaTypeOf(data);
    if (data === undefined || mediaType === undefined || !accepted.includes(mediaType)) continue;
    images.push({ mediaType, data });
  }
  return images;
}

/** What may be an image: an image block's data, or a resource given as bytes. */
function payloadOf(block: Json): string | undefined {
  if (!isJsonObject(block)) return undefined;
  const { type, data, resource } = block;
  if (type === "image") return typeof data === "string" ? data : undefined;
  if (type !== "resource" || !isJsonObject(resource)) return undefined;
  return typeof resource.blob === "string" ? resource.blob : undefined;
}

function mediaTypeOf(data: string): string | undefined {
  if (data.length > IMAGE_CHARS_MAX || data.length % 4 !== 0 || !BASE64.test(data)) {
    return undefined;
  }
  const start = atob(data.slice(0, 16));
  if (start.startsWith(RIFF) && start.slice(8, 12) === WEBP) return "image/webp";
  return KINDS.find(([, bytes]) => bytes.every((byte, at) => start.charCodeAt(at) === byte))?.[0];
}
