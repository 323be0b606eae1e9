/** Lists with pages: they end on a page that brings nothing new, whatever the cursors say, and have caps. */
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";

export const PAGES_MAX = 200;
export const ITEMS_MAX = 5_000;

export interface Page {
  items: Json[];
  nextCursor: Json | undefined;
}

export interface ListingOptions {
  server: string;
  /** What is listed, for messages: `tools`. */
  what: string;
  /** Member that tells two items apart: `name`, `uri`. */
  key: string;
  fetchPage(cursor: string | undefined): Promise<Page>;
  pagesMax?: number;
  itemsMax?: number;
}

/**
 * All items, in the order they came; items without a usable key come too, once each.
 *
 * Throws RESOURCE_EXHAUSTED over a cap, and what `fetchPage` throws.
 */
export async function listAll(options: ListingOptions): Promise<Json[]> {
  const { server, what, fetchPage, pagesMax = PAGES_MAX, itemsMax = ITEMS_MAX } = options;
  const seen = new Set<string>();
  const items: Json[] = [];
  let cursor: string | undefined;
  for (let pages = 1;; pages += 1) {
    const page = await fetchPage(cursor);
    const fresh = page.items.filter((item) => {
      const key = keyOf(item, options.key);
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
    items.push(...fresh);
    if (fresh.length === 0 || typeof page.nextCursor !== "string") return items;
    if (items.length > itemsMax || pages >= pagesMax) {
      throw new SysError(
        "RESOURCE_EXHAUSTED",
        `Server "${server}" lists ${what} without end: ${items.length} on ${pages} pages (at most ${itemsMax} on ${pagesMax})`,
      );
    }
    cursor = page.nextCursor;
  }
}

function keyOf(item: Json, key: string): string {
  const value = isJsonObject(item) ? item[key] : undefined;
  return typeof value === "string" ? `k${value}` : `j${JSON.stringify(item)}`;
}

/** The page in a list result; a result without the list is an empty page. */
export function pageOf(result: Json, member: string): Page {
  const object: JsonObject = isJsonObject(result) ? result : {};
  const items = object[member];
  return { items: Array.isArray(items) ? items : [], nextCursor: object["nextCursor"] };
}
