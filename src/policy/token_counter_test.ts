import assert from "node:assert/strict";
import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import { surelyWithin, TokenCounter, tokenCounter } from "./token_counter.ts";

const PROSE = "The quick brown fox jumps over the lazy dog. Größe und Maß, 東京, 😀😀. ".repeat(50);

Deno.test("a count is never less than the tokenizer's own, and little more", async () => {
  const counter = await tokenCounter();
  const own = encode(PROSE).length;
  const counted = counter.count(PROSE);
  assert.ok(counted >= own && counted <= own * 1.05, `${counted} for ${own}`);
});

Deno.test("text that looks like a control token is text", async () => {
  const counter = await tokenCounter();
  assert.ok(counter.count("<|endoftext|>") > 1);
});

Deno.test("a count stops soon after what it is asked for", () => {
  let calls = 0;
  const counter = new TokenCounter((text) => {
    calls += 1;
    return text.length;
  });
  assert.ok(counter.count("x".repeat(1_000_000), 100) > 100);
  assert.equal(calls, 1);
});

Deno.test("head and tail are the longest that fit, on whole characters, for every limit", async () => {
  const counter = await tokenCounter();
  const text = "a😀é ".repeat(40);
  for (let limit = 0; limit <= counter.count(text) + 1; limit += 7) {
    const head = counter.head(text, limit);
    const tail = counter.tail(text, limit);
    assert.ok(text.startsWith(head) && text.endsWith(tail));
    assert.ok(head.isWellFormed() && tail.isWellFormed());
    assert.ok(counter.count(head) <= limit && counter.count(tail) <= limit);
  }
  assert.equal(counter.head(text, 1e6), text);
  assert.equal(counter.tail(text, 1e6), text);
});

Deno.test("a word without a border takes no time out of proportion", async () => {
  const counter = await tokenCounter();
  const word = "x".repeat(400_000);
  const startMs = performance.now();
  counter.count(word);
  counter.head(word, 1_000);
  counter.tail(word, 1_000);
  assert.ok(performance.now() - startMs < 60_000);
});

Deno.test("what is surely within a limit needs no counting: a token is a byte at least", () => {
  assert.ok(surelyWithin("abc", 3));
  assert.ok(!surelyWithin("abcd", 3));
  assert.ok(!surelyWithin("ééé", 5));
  assert.ok(surelyWithin("ééé", 6));
  assert.ok(surelyWithin("", 0));
});
