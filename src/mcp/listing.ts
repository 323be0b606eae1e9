/**
 * Lists with pages: they end on a page that brings nothing new, whatever the cursors say, and have caps.
 *
 * An empty page with a cursor that wasn't there yet is no end, for some pages: a server that filters what it lists sends such. A page of items that are all known is one; an equal cursor with other items isn't. How long it takes in all is limited by who asks.
 */
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";

export const PAGES_MAX = 200;
export const ITEMS_MAX = 5_000;
/** Empty pages that are followed one after the other, each by a new cursor. */
export const EMPTY_PAGES_MAX = 10;

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
  const cursors = new Set<string>();
  const items: Json[] = [];
  let cursor: string | undefined;
  let emptyPages = 0;
  for (let pages = 1;; pages += 1) {
    const page = await fetchPage(cursor);
    const fresh = page.items.filter((item) => {
      const key = keyOf(item, options.key);
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
    items.push(...fresh);
    const { nextCursor } = page;
    if (typeof nextCursor !== "string") return items;
    emptyPages = fresh.length > 0 ? 0 : emptyPages + 1;
    const mayGoOn = fresh.length > 0 || page.items.length === 0 && !cursors.has(nextCursor);
    if (!mayGoOn || emptyPages > EMPTY_PAGES_MAX) return items;
    cursors.add(nextCursor);
    if (items.length > itemsMax || pages >= pagesMax) {
      throw new SysError(
        "RESOURCE_EXHAUSTED",
        `Server "${server}" lists ${what} without end: ${items.length} on ${pages} pages (at most ${itemsMax} on ${pagesMax})`,
      );
    }
    cursor = nextCursor;
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
