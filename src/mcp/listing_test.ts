import assert from "node:assert/strict";
import type { Json } from "../base/json.ts";
import { EMPTY_PAGES_MAX, listAll, type Page, pageOf } from "./listing.ts";

const tools = (...names: string[]): Json[] => names.map((name) => ({ name }));

function source(pages: Page[]) {
  const cursors: (string | undefined)[] = [];
  const fetchPage = (cursor: string | undefined) => {
    cursors.push(cursor);
    return Promise.resolve(
      pages[Math.min(cursors.length, pages.length) - 1] ?? pageOf({}, "tools"),
    );
  };
  return { fetchPage, cursors };
}

const list = (fetchPage: (cursor: string | undefined) => Promise<Page>, more = {}) =>
  listAll({ server: "s", what: "tools", key: "name", fetchPage, ...more });

Deno.test("pages are followed by their cursors to the end", async () => {
  const { fetchPage, cursors } = source([
    { items: tools("a"), nextCursor: "1" },
    { items: tools("b"), nextCursor: "2" },
    { items: tools("c"), nextCursor: undefined },
  ]);
  assert.deepEqual(await list(fetchPage), tools("a", "b", "c"));
  assert.deepEqual(cursors, [undefined, "1", "2"]);
});

Deno.test("[B51] an empty cursor for ever ends with the first page that brings nothing new", async () => {
  const { fetchPage, cursors } = source([{ items: tools("a", "b"), nextCursor: "" }]);
  assert.deepEqual(await list(fetchPage), tools("a", "b"));
  assert.equal(cursors.length, 2);
});

Deno.test("[B53] a page that is empty is no end while its cursor is a new one", async () => {
  const { fetchPage } = source([
    { items: [], nextCursor: "1" },
    { items: tools("a"), nextCursor: "2" },
    { items: [], nextCursor: "3" },
    { items: [], nextCursor: "4" },
    { items: tools("b"), nextCursor: "4" },
    { items: [], nextCursor: "4" },
  ]);
  assert.deepEqual(await list(fetchPage), tools("a", "b"));
});

Deno.test("[B51] new cursors for ever, with empty pages or with known items, end the list", async () => {
  let pages = 0;
  const fetchPage = () =>
    Promise.resolve({ items: pages === 0 ? tools("a") : [], nextCursor: String(pages++) });
  assert.deepEqual(await list(fetchPage), tools("a"));
  assert.equal(pages, 1 + EMPTY_PAGES_MAX + 1);
  pages = 0;
  const same = () => Promise.resolve({ items: tools("a"), nextCursor: String(pages++) });
  assert.deepEqual(await list(same), tools("a"));
  assert.equal(pages, 2);
});

Deno.test("[B53] an equal cursor with other pages is followed", async () => {
  const { fetchPage } = source([
    { items: tools("a"), nextCursor: "same" },
    { items: tools("b"), nextCursor: "same" },
    { items: tools("c"), nextCursor: "same" },
    { items: [], nextCursor: "same" },
  ]);
  assert.deepEqual(await list(fetchPage), tools("a", "b", "c"));
});

Deno.test("[B51] new tools without end are refused by name at the caps", async () => {
  let count = 0;
  const endless = () => Promise.resolve({ items: tools(`t${count++}`), nextCursor: "more" });
  await assert.rejects(() => list(endless, { pagesMax: 5 }), {
    code: "RESOURCE_EXHAUSTED",
    message: /Server "s" lists tools without end: 5 on 5 pages/,
  });
  const wide = () =>
    Promise.resolve({
      items: tools(...Array.from({ length: 50 }, () => `w${count++}`)),
      nextCursor: "more",
    });
  await assert.rejects(() => list(wide, { itemsMax: 80 }), { code: "RESOURCE_EXHAUSTED" });
});

Deno.test("null and a missing cursor end the list; a result without one is empty", async () => {
  const { fetchPage } = source([{ items: tools("a"), nextCursor: null }]);
  assert.deepEqual(await list(fetchPage), tools("a"));
  assert.deepEqual(pageOf({}, "tools"), { items: [], nextCursor: undefined });
  assert.deepEqual(pageOf("odd", "tools"), { items: [], nextCursor: undefined });
});
