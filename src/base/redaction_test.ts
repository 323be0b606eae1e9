import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Json } from "./json.ts";
import { createRedaction, REDACTED, Redactor } from "./redaction.ts";

/** Pseudo-random numbers from 0 to 1, the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const ALPHABET = [...'abcAB01 +%/-_="\\\n&é漢😀'];

function randomText(random: () => number, length: number, alphabet = ALPHABET): string {
  return Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)] ?? "").join(
    "",
  );
}

const percentAll = (text: string, hex: (digits: string) => string) =>
  [...new TextEncoder().encode(text)].map((byte) => `%${hex(byte.toString(16).padStart(2, "0"))}`)
    .join("");

/** Ways a value leaves a program, each of which must not show it. */
const ENCODINGS: { [name: string]: (secret: string) => string } = {
  plain: (secret) => secret,
  json: (secret) => JSON.stringify(secret),
  "json in json": (secret) => JSON.stringify(JSON.stringify(secret)),
  "json with slashes escaped": (secret) => JSON.stringify(secret).replaceAll("/", "\\/"),
  "json in json with slashes escaped": (secret) =>
    JSON.stringify(JSON.stringify(secret).replaceAll("/", "\\/")),
  "json made for a web page": (secret) =>
    JSON.stringify(secret).replaceAll(
      /[&<>'+?]/g,
      (unit) => `\\u00${unit.charCodeAt(0).toString(16)}`,
    ),
  component: (secret) => encodeURIComponent(secret),
  "component in lower case": (secret) =>
    encodeURIComponent(secret).replaceAll(/%../g, (hex) => hex.toLowerCase()),
  form: (secret) => new URLSearchParams({ key: secret }).toString(),
  "all percent": (secret) => percentAll(secret, (digits) => digits.toUpperCase()),
  "all percent in lower case": (secret) => percentAll(secret, (digits) => digits),
  base64: (secret) => Buffer.from(secret).toString("base64"),
  "base64 after one byte": (secret) => Buffer.from(`x${secret}`).toString("base64"),
  "base64 after two bytes": (secret) => Buffer.from(`xy${secret}`).toString("base64"),
  "base64 in a pair": (secret) => Buffer.from(`user:${secret}:tail`).toString("base64"),
  base64url: (secret) => Buffer.from(`xy${secret}zz`).toString("base64url"),
  "base64 percent-encoded": (secret) =>
    encodeURIComponent(Buffer.from(`x${secret}`).toString("base64")),
};

for (const [name, encode] of Object.entries(ENCODINGS)) {
  Deno.test(`[C09] a secret is found ${name}`, () => {
    for (
      const secret of [
        "s3cr3t-canary",
        "pa ss+w%rd/?&",
        'quo"te\\back',
        "über-geheim 漢字😀",
        "line one\nline two",
        "????>>>>~~~~",
        "/a/path+and/more==",
      ]
    ) {
      const redactor = new Redactor([secret, "another-secret"]);
      const encoded = encode(secret);
      const redacted = redactor.redact(`before ${encoded} after`);
      assert.ok(redacted.includes(REDACTED), `${secret}: ${encoded} → ${redacted}`);
      assert.ok(redacted.startsWith("before ") && redacted.endsWith(" after"), redacted);
      // At the borders of base64 at most a character on each side holds bits of a neighbour and stays.
      const left = redacted.slice(7, -6).replace(REDACTED, "");
      assert.ok(!left.includes(encoded.slice(4, -4)), `${encoded} → ${redacted}`);
    }
  });
}

Deno.test("without secrets, and for short values, everything is given back as it is", () => {
  const redactor = new Redactor(["short", ""]);
  assert.ok(redactor.isEmpty);
  const value = { a: ["short"] };
  assert.equal(redactor.redact("short"), "short");
  assert.equal(redactor.redactJson(value), value);
  const stream = redactor.stream();
  assert.equal(stream.push("short") + stream.flush(), "short");
});

Deno.test("overlapping secrets become one mark, neighbours two", () => {
  const redactor = new Redactor(["abcdef", "defghi", "123456"]);
  assert.equal(redactor.redact("-abcdefghi-"), `-${REDACTED}-`);
  assert.equal(redactor.redact("abcdef123456"), REDACTED + REDACTED);
  assert.equal(new Redactor(["abcabc"]).redact("abcabcabc!"), `${REDACTED}!`);
  assert.equal(new Redactor(["aaaaaa", "aaaaaaaaaa"]).redact(`${"a".repeat(25)}b`), `${REDACTED}b`);
});

Deno.test("a secret inside the beginning of a longer one is found, whether the longer one follows or not", () => {
  const redactor = new Redactor(["--abcdef-tail", "abcdef"]);
  assert.equal(redactor.redact("--abcdef-nope"), `--${REDACTED}-nope`);
  assert.equal(redactor.redact("--abcdef-tail"), REDACTED);
  const stream = redactor.stream();
  assert.equal(
    stream.push("--abcdef") + stream.push("-nope") + stream.flush(),
    `--${REDACTED}-nope`,
  );
});

Deno.test("a secret with white space around it is found without it", () => {
  assert.equal(new Redactor(["token-1234\n"]).redact("is token-1234."), `is ${REDACTED}.`);
});

Deno.test("[C11] keys and values of JSON are redacted, unchanged parts keep their identity", () => {
  const redactor = new Redactor(["s3cr3t-canary", "tok-two-2"]);
  const same: Json = { a: [1, { b: null }], c: "x" };
  assert.equal(redactor.redactJson(same), same);
  const value: Json = {
    same,
    list: ["pre s3cr3t-canary"],
    "s3cr3t-canary": 1,
    "tok-two-2": { deep: "tok-two-2" },
  };
  const redacted = redactor.redactJson(value);
  assert.deepEqual(redacted, {
    same,
    list: [`pre ${REDACTED}`],
    [REDACTED]: 1,
    [`${REDACTED} (2)`]: { deep: REDACTED },
  });
  assert.ok(
    typeof redacted === "object" && redacted !== null && !Array.isArray(redacted) &&
      redacted.same === same,
  );
});

Deno.test("a number that is a secret is redacted, other numbers stay numbers", () => {
  const redactor = new Redactor(["31415926"]);
  assert.deepEqual(redactor.redactJson([31415926, 3.5, 131415926]), [
    REDACTED,
    3.5,
    `1${REDACTED}`,
  ]);
});

Deno.test("sinks know more secrets than the intake", () => {
  const { intake, sink } = createRedaction({
    intake: ["from-variable"],
    sinkOnly: ["literal-value"],
  });
  assert.equal(intake.redact("from-variable literal-value"), `${REDACTED} literal-value`);
  assert.equal(sink.redact("from-variable literal-value"), `${REDACTED} ${REDACTED}`);
  const same = createRedaction({ intake: ["from-variable"] });
  assert.equal(same.intake, same.sink);
});

Deno.test("any chunks of a stream together are the text redacted at once", () => {
  const random = randomFrom(11);
  for (let round = 0; round < 400; round++) {
    const few = [..."ab%6 1+"];
    const alphabet = round % 2 === 0 ? few : ALPHABET;
    const secrets = Array.from(
      { length: 1 + Math.floor(random() * 4) },
      () => randomText(random, 6 + random() * 6, alphabet),
    );
    const redactor = new Redactor(secrets);
    let text = "";
    while (text.length < 120) {
      const secret = secrets[Math.floor(random() * secrets.length)] ?? "";
      const forms = Object.values(ENCODINGS);
      const form = forms[Math.floor(random() * forms.length)] ?? String;
      text += random() < 0.4
        ? form(secret.toWellFormed())
        : randomText(random, random() * 12, alphabet);
    }
    const stream = redactor.stream();
    let streamed = "";
    for (let at = 0; at < text.length;) {
      const size = 1 + Math.floor(random() * 9);
      streamed += stream.push(text.slice(at, at + size));
      at += size;
    }
    streamed += stream.flush();
    assert.equal(streamed, redactor.redact(text), JSON.stringify({ secrets, text }));
  }
});

Deno.test("a plain search by hand finds the same as the automaton", () => {
  const random = randomFrom(5);
  for (let round = 0; round < 300; round++) {
    const letters = [..."abc"];
    const secrets = Array.from({ length: 3 }, () => randomText(random, 6 + random() * 3, letters));
    const text = randomText(random, 300, letters);
    const hidden = new Uint8Array(text.length);
    const joined = new Uint8Array(text.length);
    for (const secret of secrets) {
      for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1)) {
        hidden.fill(1, at, at + secret.length);
        joined.fill(1, at + 1, at + secret.length);
      }
    }
    let expected = "";
    for (let at = 0; at < text.length; at++) {
      if (hidden[at] === 0) expected += text[at];
      else if (joined[at] === 0) expected += REDACTED;
    }
    assert.equal(new Redactor(secrets).redact(text), expected, JSON.stringify({ secrets, text }));
  }
});

Deno.test("a stream holds back only what may become a secret", () => {
  const stream = new Redactor(["s3cr3t-canary-of-some-length"]).stream();
  assert.equal(stream.push("plain words pass at once"), "plain words pass at once");
  assert.equal(stream.push(" s3cr3"), " ");
  assert.equal(stream.push("t-no"), "s3cr3t-no");
  assert.equal(stream.push("50%"), "50");
  assert.equal(stream.push("4"), "");
  assert.equal(stream.push("x"), "%4x");
  assert.equal(stream.push("a\ud83d"), "a");
  assert.equal(stream.push("\ude00"), "😀");
  assert.equal(stream.push("s3cr3t"), "");
  assert.equal(stream.flush(), "s3cr3t");
  assert.equal(stream.flush(), "");
});

Deno.test("thousands of secrets over megabytes, and texts made to be slow, take linear time", () => {
  const random = randomFrom(3);
  const secrets = Array.from(
    { length: 3000 },
    () => `sk-project-${randomText(random, 30, [..."abcdefgh0123"])}`,
  );
  const redactor = new Redactor([...secrets, `${"a".repeat(2000)}b`]);
  const text = `${"sk-project-abc ".repeat(70_000)}${"a".repeat(1_000_000)}${secrets[7]}`;
  const begin = performance.now();
  assert.ok(redactor.redact(text).endsWith(`a${REDACTED}`));
  // Measured at 40 ms; a quadratic search would take minutes.
  assert.ok(performance.now() - begin < 30_000);
});

Deno.test("text with lone surrogates goes through unharmed", () => {
  const redactor = new Redactor(["s3cr3t-canary"]);
  assert.equal(redactor.redact("\ud83d s3cr3t-canary \ude00"), `\ud83d ${REDACTED} \ude00`);
});

Deno.test("[C09] chunks may end within an escape: together they are the text redacted at once", () => {
  const random = randomFrom(7);
  const secrets = ["ab/c/d/ex", 'ab"cd/"ex', "ab\\cd\\/x", "u002fab/c"];
  const pieces = ["\\", "\\\\", "/", "\\/", "\\u002f", "u", "002f", "ab", "%2f", '\\"', ...secrets];
  for (let round = 0; round < 3_000; round += 1) {
    const redactor = new Redactor(round % 2 === 0 ? secrets : [secrets[round % 4] ?? ""]);
    const escaped = () => random() < 0.5 ? "\\/" : "\\u002F";
    const text = randomText(random, 12, pieces).replaceAll(
      /\//g,
      () => random() < 0.5 ? escaped() : "/",
    );
    const stream = redactor.stream();
    let given = "";
    for (let at = 0; at < text.length;) {
      const size = 1 + Math.floor(random() * 5);
      given += stream.push(text.slice(at, at + size));
      at += size;
    }
    assert.equal(given + stream.flush(), redactor.redact(text), JSON.stringify(text));
  }
});

Deno.test("a secret of several lines is found line by line", () => {
  const secret = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\nend\n";
  const redactor = new Redactor([secret]);
  const numbered = secret.split("\n").map((line, index) => `${index + 1}\t  ${line}\r`).join("\n");
  for (const text of [numbered, JSON.stringify(numbered)]) {
    assert.ok(!/MIIEvQ|9w0BAQ|BEGIN/.test(redactor.redact(text)));
  }
  assert.equal(redactor.redact("the end"), "the end");
  assert.equal(redactor.redact(secret), REDACTED);
});

/** Base64 of `text` in lines of `columns`, as `base64` and others print it. */
function wrapped(text: string, columns: number, separator = "\n"): string {
  const base64 = btoa(text);
  const lines: string[] = [];
  for (let at = 0; at < base64.length; at += columns) lines.push(base64.slice(at, at + columns));
  return lines.join(separator);
}

const LONG_SECRET = "xK9 pQ2.vL7-".repeat(12);

Deno.test("[C09] a secret is found in base64 of many lines, indented, numbered or escaped", () => {
  const redactor = new Redactor([LONG_SECRET]);
  for (let lead = 0; lead < 60; lead += 7) {
    const text = `${"lead ".repeat(12).slice(0, lead)}${LONG_SECRET} and after`;
    for (const columns of [60, 64, 76]) {
      for (const separator of ["\n", "\r\n", "\n    ", "\\n", "\\r\\n", "\n 12\t", "\\n12\\t"]) {
        const redacted = redactor.redact(wrapped(text, columns, separator));
        const shown = `${lead} ${columns} ${JSON.stringify(separator)}: ${redacted}`;
        assert.ok(redacted.includes(REDACTED), shown);
        const left = redacted.replaceAll(/\s|\\[nrt]|\d+\t/g, "").length;
        assert.ok(left < btoa(text).length - btoa(LONG_SECRET).length + 40, shown);
      }
    }
  }
  const plain = "one line\nand another 12\tof text\n";
  assert.equal(redactor.redact(plain), plain);
});

Deno.test("[C09] base64 of many lines that comes in pieces is redacted as in one", () => {
  const random = randomFrom(11);
  for (let round = 0; round < 1_000; round += 1) {
    const separator = ["\n", "\r\n", "\n 1\t", "\\n", "\\\\n12\\t"][round % 5] ?? "";
    const text = `a ${wrapped(`${"z".repeat(round % 4)}${LONG_SECRET}`, 64, separator)} b`;
    const redactor = new Redactor([LONG_SECRET]);
    const stream = redactor.stream();
    let given = "";
    for (let at = 0; at < text.length;) {
      const size = 1 + Math.floor(random() * 40);
      given += stream.push(text.slice(at, at + size));
      at += size;
    }
    assert.equal(given + stream.flush(), redactor.redact(text), JSON.stringify(text));
  }
});
