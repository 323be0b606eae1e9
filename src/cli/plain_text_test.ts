import assert from "node:assert/strict";
import { clipped, oneLine, PlainStream, plainText, textWidth } from "./plain_text.ts";

Deno.test("what a terminal would obey is shown instead", () => {
  assert.equal(plainText("a\x1b[31mred\x1b]0;title\x07b"), "a\\x1b[31mred\\x1b]0;title\\x07b");
  assert.equal(plainText("over\rwrite"), "over\\x0dwrite");
  assert.equal(plainText("\x9b2J\x7f\0"), "\\x9b2J\\x7f\\x00");
  assert.equal(plainText("evil\u202egnp.exe"), "evil\\u202egnp.exe");
});

Deno.test("lines, tabs and letters of any script stay as they are", () => {
  const text = "one\n\ttwo — 三 😀 é";
  assert.equal(plainText(text), text);
  assert.equal(plainText("dos\r\nfile"), "dos\nfile");
});

Deno.test("one line is one line", () => {
  assert.equal(oneLine("  a\n\n b\t\r\nc "), "a b c");
});

Deno.test("a stream of pieces gives what the whole text gives, wherever it is cut", () => {
  const text = "a\r\nb😀c\x1b[0m\rd\r\n";
  for (let cut = 0; cut <= text.length; cut++) {
    const stream = new PlainStream();
    const shown = stream.take(text.slice(0, cut)) + stream.take(text.slice(cut)) + stream.end();
    assert.equal(shown, plainText(text), `cut at ${cut}`);
  }
});

Deno.test("half a letter at the end of a stream becomes a replacement character", () => {
  const stream = new PlainStream();
  assert.equal(stream.take("a\ud83d"), "a");
  assert.equal(stream.end(), "\ufffd");
  assert.equal(stream.end(), "");
});

Deno.test("wide letters take two columns, marks and joiners none", () => {
  assert.equal(textWidth("abc"), 3);
  assert.equal(textWidth("三体"), 4);
  assert.equal(textWidth("e\u0301"), 1);
  assert.equal(textWidth("👩‍👩‍👧"), 2);
  assert.equal(textWidth("\u200b"), 0);
});

Deno.test("a cut text fits its columns and is never cut inside of a letter", () => {
  assert.equal(clipped("abcdef", 6), "abcdef");
  assert.equal(clipped("abcdef", 5), "abcd…");
  assert.equal(clipped("abc", 1), "…");
  assert.equal(clipped("abc", 0), "…");
  assert.equal(clipped("三三三", 0), "…");
  assert.equal(clipped("三三三", 5), "三三…");
  assert.equal(clipped("三三三", 4), "三…");
  assert.equal(clipped("👩‍👩‍👧👩‍👩‍👧", 3), "👩‍👩‍👧…");
});

Deno.test("the tables of letters are loaded for the first text that needs them, not at the start", async () => {
  const url = new URL("./plain_text.ts", import.meta.url).href;
  const script = `const Segmenter = Intl.Segmenter; let made = 0;
    Intl.Segmenter = function () { made += 1; return new Segmenter(); };
    const { clipped, textWidth } = await import(${JSON.stringify(url)});
    textWidth("plain"); clipped("plain", 3); const plain = made;
    textWidth("三"); textWidth("三"); console.log(plain, made);`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", script],
    env: { NO_COLOR: "1" },
  }).output();
  assert.equal(new TextDecoder().decode(stdout), "0 1\n");
});
