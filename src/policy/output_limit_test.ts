import assert from "node:assert/strict";
import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import type { Json } from "../base/json.ts";
import { isJsonObject, sha256Hex } from "../base/json.ts";
import { limitOutput } from "./output_limit.ts";
import { surelyWithin } from "./token_counter.ts";

const trueTokens = (text: string) => encode(text, { disallowedSpecial: new Set() }).length;
const block = (text: string): Json => ({ type: "text", text });

/** Runs a limit; `kept` holds what was stored. */
async function limited(content: Json[], tokensMax: number, structured?: Json) {
  const kept: string[] = [];
  const output = await limitOutput(content, structured, tokensMax, (whole) => {
    kept.push(whole);
    return Promise.resolve({ sha256: sha256Hex(whole), bytes: whole.length });
  });
  return { ...output, kept };
}

function textsOf(content: readonly Json[]): string {
  return content.map((one) => isJsonObject(one) && typeof one.text === "string" ? one.text : "")
    .join("");
}

/** Pseudo-random numbers from 0 to 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const WORDS = [
  "the",
  " quick",
  "\n\n",
  "😀",
  "é",
  "漢字",
  " 12345",
  '{"a":',
  "👩‍👩‍👧",
  "\t",
  "aaaaaaaaaaaa",
  "<|endoftext|>",
  "e\u0301",
];

function randomText(random: () => number, words: number): string {
  return Array.from({ length: words }, () => WORDS[Math.floor(random() * WORDS.length)]).join("");
}

Deno.test("output within the limit passes untouched and nothing is kept", async () => {
  const content = [block("short"), {
    type: "image",
    data: "A".repeat(5000),
    mimeType: "image/png",
  }];
  const { kept, ...output } = await limited(content, 100, { other: 1 });
  assert.deepEqual(output, { content, structured: { other: 1 } });
  assert.equal(output.content, content);
  assert.deepEqual(kept, []);
});

Deno.test("a text of more bytes than tokens is counted before it is cut", async () => {
  const content = [block("The quick brown fox jumps over the lazy dog. ".repeat(10))];
  const { kept, ...output } = await limited(content, 110);
  assert.equal(output.content, content);
  assert.deepEqual(kept, []);
});

Deno.test("output over the limit keeps head and tail, with a marker that states the sizes and where the whole is", async () => {
  const lines = Array.from({ length: 3000 }, (_, index) => `line ${index}`).join("\n");
  const output = await limited([block(lines)], 400);
  const text = textsOf(output.content);
  assert.match(text, /^line 0\nline 1\n/);
  assert.match(text, /\nline 2999$/);
  const hash = sha256Hex(lines).slice(0, 12);
  const marker =
    /\n\n\[… cut to 400 of (\d+) tokens, (\d+) characters; ReadResult gives the rest: \{"result":"(\w+)","offset":(\d+)\} …\]\n\n/
      .exec(text);
  assert.deepEqual(marker?.slice(2), [String(lines.length), hash, String(marker?.index)]);
  assert.equal(marker?.[1], String(output.cut?.tokens));
  assert.deepEqual(output.kept, [lines]);
  assert.equal(output.whole?.sha256, sha256Hex(lines));
  assert.ok(trueTokens(text) <= 400 && trueTokens(text) > 300, String(trueTokens(text)));
  assert.ok(Math.abs((output.cut?.keptTokens ?? 0) - trueTokens(text)) < 20);
});

Deno.test("[D09] whatever the text and the limit: never over it, no lone surrogate, the same each time", async () => {
  const random = randomFrom(7);
  for (let round = 0; round < 150; round++) {
    const content = [
      block(randomText(random, 200 + random() * 800)),
      block(randomText(random, 50)),
    ];
    const tokensMax = 1 + Math.floor(random() * random() * 300);
    const output = await limited(content, tokensMax);
    const text = textsOf(output.content);
    assert.ok(
      trueTokens(text) <= tokensMax,
      `${trueTokens(text)} > ${tokensMax} in round ${round}`,
    );
    assert.ok((output.cut?.keptTokens ?? 0) <= tokensMax, `round ${round}`);
    assert.ok(text.isWellFormed(), `round ${round}`);
    assert.deepEqual(await limited(content, tokensMax), output);
    assert.ok(output.kept[0]?.isWellFormed());
  }
});

Deno.test("[D09] an emoji at every offset around the cut is kept whole or left out", async () => {
  for (let offset = 0; offset < 300; offset++) {
    const text = `${"a ".repeat(40)}${"x".repeat(offset)}${"😀".repeat(300)}`;
    const output = await limited([block(text)], 120);
    assert.ok(textsOf(output.content).isWellFormed(), `offset ${offset}`);
  }
});

Deno.test("a word of a megabyte is cut in bounded time", async () => {
  const begin = performance.now();
  const output = await limited([block("a".repeat(1_000_000))], 4096);
  assert.ok(performance.now() - begin < 60_000);
  assert.ok(textsOf(output.content).length < 50_000);
  assert.match(textsOf(output.content), /of about \d+ tokens/);
});

Deno.test("[D05] images stay untouched and uncounted in their place, and the marker counts them", async () => {
  const image = { type: "image", data: "A".repeat(400_000), mimeType: "image/png" };
  const content = [image, block("b ".repeat(5000)), image, block("c ".repeat(5000))];
  const output = await limited(content, 300);
  assert.deepEqual(output.content.map((one) => isJsonObject(one) && one.type), [
    "image",
    "text",
    "image",
  ]);
  assert.equal(output.content[0], image);
  assert.match(textsOf(output.content), /; 2 images or other binary parts kept/);
  assert.ok(!output.kept.join().includes("AAAA"));
});

Deno.test("[D05] structured content that repeats the text or carries the image again is dropped", async () => {
  const value = { items: [{ a: 1, b: "é" }], n: null };
  assert.equal(
    (await limited([block(JSON.stringify(value, null, 2))], 1000, {
      n: null,
      items: [{ b: "é", a: 1 }],
    })).structured,
    undefined,
  );
  const image = { type: "image", data: "B".repeat(2000), mimeType: "image/png" };
  const output = await limited([image], 1000, { picture: image.data });
  assert.equal(output.structured, undefined);
  assert.deepEqual(output.content, [image]);
  assert.deepEqual((await limited([block('{"a":1}')], 1000, { a: 2 })).structured, { a: 2 });
});

Deno.test("structured content over the limit beside a short text goes, and is kept whole", async () => {
  const structured = { rows: Array.from({ length: 500 }, (_, index) => ({ index })) };
  const output = await limited([block("500 rows")], 100, structured);
  assert.deepEqual(output.content, [block("500 rows")]);
  assert.equal(output.structured, undefined);
  assert.deepEqual(output.kept, [`500 rows\n${JSON.stringify(structured)}`]);
});

Deno.test("structured content alone is cut as text", async () => {
  const structured = { rows: Array.from({ length: 500 }, (_, index) => ({ index })) };
  const output = await limited([], 100, structured);
  assert.match(textsOf(output.content), /^\{"rows":\[\{"index":0/);
  assert.equal(output.structured, undefined);
  assert.deepEqual(output.kept, [JSON.stringify(structured)]);
});

Deno.test("a small structured content survives a cut of the text", async () => {
  const output = await limited([block("word ".repeat(2000))], 100, { exit: 0 });
  assert.deepEqual(output.structured, { exit: 0 });
});

Deno.test("a limit too small for any words still isn't passed", async () => {
  for (let tokensMax = 1; tokensMax < 40; tokensMax++) {
    const text = textsOf((await limited([block("word ".repeat(2000))], tokensMax)).content);
    assert.ok(trueTokens(text) <= tokensMax, `${tokensMax}: ${JSON.stringify(text)}`);
  }
});

Deno.test("a marker that leaves little room still says how the rest is read", async () => {
  const text = textsOf((await limited([block("word ".repeat(2000))], 64)).content);
  assert.match(text, /^(word )+/);
  const [marker, offset] =
    /\n\[… cut; ReadResult \{"result":"\w{12}","offset":(\d+)\} …\]\n/.exec(text) ??
      assert.fail(text);
  assert.equal(Number(offset), text.indexOf(marker));
});

Deno.test("unknown kinds of blocks and resources count as the text they become", async () => {
  const content: Json[] = [{ type: "novel", body: "x ".repeat(1000) }, {
    type: "resource",
    resource: { uri: "file:///a", text: "y ".repeat(1000) },
  }];
  const output = await limited(content, 100);
  assert.equal(output.content.length, 1);
  assert.match(output.kept[0] ?? "", /^\{"type":"novel".*\n\[resource file:\/\/\/a\]\ny y/);
});

Deno.test("a text is surely within a limit by its bytes alone", () => {
  assert.ok(surelyWithin("abc", 3) && !surelyWithin("abcd", 3));
  assert.ok(surelyWithin("é", 2) && !surelyWithin("é漢", 4));
  for (const text of WORDS) assert.ok(trueTokens(text) <= new TextEncoder().encode(text).length);
});
