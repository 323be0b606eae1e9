/**
 * Model-facing tool names: `mcp__{server}__{tool}` of `[A-Za-z0-9_-]`, at most 64 characters.
 *
 * A name that had to be changed ends in a hash of the original, so it is stable and collides with no other. Reading back goes through the table of the mount, never by taking the name apart.
 */
import { sha256Hex } from "../../base/json.ts";

export const MODEL_NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;
const FOREIGN = /[^A-Za-z0-9_-]/gu;

/** The name as it would be without any limit. */
export function plainName(server: string, tool: string): string {
  return `mcp__${server}__${tool}`;
}

/**
 * The model's name for a server's tool.
 *
 * Server names that hold `__` or end in `_` get the hash too: without it `a__b`/`c` and `a`/`b__c` would be one name.
 */
export function modelNameOf(server: string, tool: string): string {
  const plain = plainName(server, tool);
  const clean = plain.replaceAll(FOREIGN, "_");
  const ambiguous = server.includes("__") || server.endsWith("_");
  if (clean === plain && clean.length <= MODEL_NAME_CHARS_MAX && !ambiguous && tool !== "") {
    return clean;
  }
  const hash = sha256Hex(JSON.stringify([server, tool])).slice(0, HASH_CHARS);
  return `${clean.slice(0, MODEL_NAME_CHARS_MAX - HASH_CHARS - 1)}_${hash}`;
}
