import assert from "node:assert/strict";
import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import { PIECE_TOKENS_MIN, pieceOf, placeOf } from "./result_piece.ts";
import { tokenCounter } from "./token_counter.ts";

const trueTokens = (text: string) => encode(text, { disallowedSpecial: new Set() }).length;
const counter = await tokenCounter();
const NOTE =
  /\n\[… characters (\d+) to (\d+) of (\d+); (?:it goes on at offset (\d+)|this is the end) …\]$/;

function read(text: string, offset: number, tokensMax: number, limit?: number) {
  const given = pieceOf(counter, text, { offset, limit, tokensMax }) ?? assert.fail();
  const [note, from, to, length, next] = NOTE.exec(given) ?? assert.fail(given);
  assert.deepEqual([Number(length), next ?? to], [text.length, to]);
  assert.ok(given.isWellFormed());
  assert.ok(trueTokens(given) <= Math.max(tokensMax, PIECE_TOKENS_MIN), `${trueTokens(given)}`);
  return {
    text: given.slice(0, -note.length),
    from: Number(from),
    to: Number(to),
    next: next === undefined ? undefined : Number(next),
  };
}

Deno.test("[B41] pieces read one after the other are the whole text, each within the limit", () => {
  const texts = [
    "line of words\n".repeat(900),
    "😀é漢".repeat(500),
    "x".repeat(3000),
    "[… characters 1 to 2 of 3; it goes on at offset 2 …]\n".repeat(50),
  ];
  for (const text of texts) {
    for (const tokensMax of [1, 130, 400]) {
      let whole = "";
      for (let next: number | undefined = 0; next !== undefined;) {
        const piece = read(text, next, tokensMax);
        assert.equal(piece.from, whole.length);
        whole += piece.text;
        next = piece.next;
      }
      assert.equal(whole, text);
    }
  }
});

Deno.test("[D09] a piece that is to begin or end inside an emoji takes the whole of it or nothing", () => {
  const text = "ab😀cd😀";
  for (let offset = 0; offset < text.length; offset++) {
    for (let limit = 1; limit <= text.length; limit++) {
      const piece = read(text, offset, 200, limit);
      assert.equal(piece.text, text.slice(piece.from, piece.to));
      assert.ok(piece.text.length >= 1 && piece.text.length <= Math.max(2, limit + 1));
      assert.ok(piece.from === offset || piece.from === offset - 1);
    }
  }
  assert.equal(read(text, 2, 200, 1).text, "😀", "one character at least, so that it goes on");
});

Deno.test("nothing is past the end", () => {
  assert.equal(pieceOf(counter, "abc", { offset: 3, tokensMax: 200 }), undefined);
  assert.equal(pieceOf(counter, "", { offset: 0, tokensMax: 200 }), undefined);
});

Deno.test("a place is told as the arguments that read it", () => {
  assert.equal(placeOf("0123456789abcdef", 7), '{"result":"0123456789ab","offset":7}');
});
