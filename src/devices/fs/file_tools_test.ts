import assert from "node:assert/strict";
import { Redactor } from "../../base/redaction.ts";
import { SysError } from "../../base/errors.ts";
import { isJsonObject, type JsonObject } from "../../base/json.ts";
import type { CallOptions } from "../../vfs/device.ts";
import { FILE_TOOLS, WorkingFolder } from "./mod.ts";

const KEY = "sk-live-0123456789abcdef0123456789abcdef";
const PEM =
  "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nYWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4\n-----END KEY-----\n";
const PNG = "iVBORw0KGgo=";

interface Stage {
  root: string;
  /** Text of the answer; an error of the call as its message. */
  call(tool: string, input: JsonObject, signal?: AbortSignal): Promise<string>;
  put(path: string, text: string | Uint8Array): void;
  get(path: string): string;
}

async function withStage(work: (stage: Stage) => Promise<void>): Promise<void> {
  const root = Deno.realPathSync(Deno.makeTempDirSync());
  const folder = await WorkingFolder.open(root);
  const call = async (name: string, input: JsonObject, signal = new AbortController().signal) => {
    const options: CallOptions = { signal, cancelGraceMs: 0, callId: "t1.0", idempotencyKey: "k" };
    try {
      const outcome = await FILE_TOOLS[name]?.(folder, new Redactor([KEY, PEM])).run(
        input,
        options,
      );
      if (outcome?.kind !== "answer") throw new Error(`No answer of ${name}`);
      const [block] = outcome.content;
      return isJsonObject(block ?? null) && isJsonObject(block!) &&
          typeof block["text"] === "string"
        ? block["text"]
        : JSON.stringify(outcome.content);
    } catch (thrown) {
      if (thrown instanceof SysError) return `[${thrown.code}] ${thrown.message}`;
      throw thrown;
    }
  };
  const put = (path: string, text: string | Uint8Array) => {
    Deno.mkdirSync(`${root}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    if (typeof text === "string") Deno.writeTextFileSync(`${root}/${path}`, text);
    else Deno.writeFileSync(`${root}/${path}`, text);
  };
  try {
    await work({ root, call, put, get: (path) => Deno.readTextFileSync(`${root}/${path}`) });
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

Deno.test("Read gives lines with their numbers, in pieces", async () => {
  await withStage(async ({ call, put }) => {
    put("a", "one\r\ntwo\n\nfour");
    assert.equal(
      await call("Read", { path: "a" }),
      "     1\tone\n     2\ttwo\n     3\t\n     4\tfour",
    );
    assert.equal(
      await call("Read", { path: "a", offset: 2, limit: 1 }),
      "     2\ttwo\n(more lines follow: go on with offset 3)",
    );
    assert.equal(
      await call("Read", { path: "a", offset: 9 }),
      "The file has 4 lines, none from 9 on",
    );
    put("empty", "");
    assert.equal(await call("Read", { path: "empty" }), "(the file is empty)");
    put("long", `${"x".repeat(70_000)}\nnext`);
    const long = await call("Read", { path: "long" });
    assert.match(long, /… \(line cut\)\n {5}2\tnext$/);
    assert.ok(long.length < 3_000);
  });
});

Deno.test("Read gives an image as an image, and refuses what is neither that nor text", async () => {
  await withStage(async ({ call, put }) => {
    put("a.png", Uint8Array.fromBase64(PNG));
    assert.deepEqual(JSON.parse(await call("Read", { path: "a.png" })), [
      { type: "image", data: PNG, mimeType: "image/png" },
    ]);
    put("binary", new Uint8Array([1, 0, 2]));
    assert.match(await call("Read", { path: "binary" }), /^\[INVALID\].*no text file/);
    assert.match(await call("Read", { path: "none" }), /^\[NOT_FOUND\]/);
    assert.match(await call("Read", { path: "." }), /^\[INVALID\].*It is a folder/);
  });
});

Deno.test("Write makes folders and files, and keeps the mode of what it replaces", async () => {
  await withStage(async ({ call, get, root }) => {
    assert.equal(
      await call("Write", { path: "a/b/c.txt", content: "hi" }),
      "Made a/b/c.txt (2 characters)",
    );
    assert.match(
      await call("Write", { path: "a/b/c.txt", content: "x" }),
      /^Replaced .* \(1 character\)$/,
    );
    Deno.chmodSync(`${root}/a/b/c.txt`, 0o755);
    assert.match(await call("Write", { path: "a/b/c.txt", content: "a\ud800b" }), /^Replaced/);
    assert.equal(get("a/b/c.txt"), "a\ufffdb");
    assert.equal((Deno.statSync(`${root}/a/b/c.txt`).mode ?? 0) & 0o777, 0o755);
    assert.match(await call("Write", { path: "a/b", content: "" }), /^\[INVALID\].*It is a folder/);
    assert.match(
      await call("Write", { path: "a/b/c.txt/d", content: "" }),
      /^\[(INVALID|NOT_FOUND)\]/,
    );
    const names = [...Deno.readDirSync(`${root}/a/b`)].map(({ name }) => name);
    assert.deepEqual(names, ["c.txt"]);
  });
});

Deno.test("Edit replaces one place, refuses a doubtful one, and takes text to the letter", async () => {
  await withStage(async ({ call, put, get }) => {
    put("a", "x = 1\ny = 1\n");
    assert.match(await call("Edit", { path: "a", old_text: "1", new_text: "2" }), /there 2 times/);
    assert.equal(get("a"), "x = 1\ny = 1\n");
    assert.equal(
      await call("Edit", { path: "a", old_text: "x = 1", new_text: "x = $& $1" }),
      "Edited a (1 place)",
    );
    assert.equal(get("a"), "x = $& $1\ny = 1\n");
    await call("Edit", { path: "a", old_text: "=", new_text: ":", all: true });
    assert.equal(get("a"), "x : $& $1\ny : 1\n");
    assert.match(await call("Edit", { path: "a", old_text: "no", new_text: "z" }), /isn't there$/);
    put("crlf", "a\r\nb\r\n");
    assert.match(
      await call("Edit", { path: "crlf", old_text: "a\nb", new_text: "z" }),
      /with other line ends/,
    );
  });
});

Deno.test("Glob finds files by their path, the newest first, and not in git's folder", async () => {
  await withStage(async ({ call, put, root }) => {
    for (const path of ["a.ts", "src/b.ts", "src/c.js", ".git/d.ts"]) put(path, "");
    Deno.utimeSync(`${root}/a.ts`, 1, 1);
    Deno.utimeSync(`${root}/src/b.ts`, 2, 2);
    assert.equal(await call("Glob", { pattern: "**/*.ts" }), "src/b.ts\na.ts");
    assert.equal(await call("Glob", { pattern: "*.{js,ts}", folder: "src" }), "src/c.js\nsrc/b.ts");
    assert.equal(await call("Glob", { pattern: "*.md" }), "No file fits *.md");
    assert.match(await call("Glob", { pattern: "*".repeat(50) }), /^\[INVALID\]/);
  });
});

Deno.test("Grep tells path, number and line, of text files alone", async () => {
  await withStage(async ({ call, put }) => {
    put("a.ts", "const One = 1;\r\nconst two = 2;\n");
    put("b.md", "one\n");
    put("bin", new Uint8Array([0, ...new TextEncoder().encode("one")]));
    assert.equal(await call("Grep", { pattern: "one" }), "b.md:1:one");
    assert.equal(
      await call("Grep", { pattern: "\\bone\\b", ignore_case: true }),
      "a.ts:1:const One = 1;\nb.md:1:one",
    );
    assert.equal(await call("Grep", { pattern: "const", glob: "*.ts", files_only: true }), "a.ts");
    assert.equal(await call("Grep", { pattern: "nothing" }), "No line fits");
    assert.match(await call("Grep", { pattern: "(" }), /^\[INVALID\] The pattern can't be used/);
    put("many", "hit\n".repeat(500));
    const many = await call("Grep", { pattern: "hit" });
    assert.match(many, /\(and more: narrow the pattern or the glob\)$/);
    assert.equal(many.split("\n").length, 201);
  });
});

Deno.test("a pattern without end is ended with the call, and nothing else stands still meanwhile", async () => {
  await withStage(async ({ call, put }) => {
    put("a", `${"a".repeat(40)}!\n`);
    const stop = new AbortController();
    const search = call("Grep", { pattern: "^(a+)+$" }, stop.signal);
    let turns = 0;
    for (; turns < 20; turns += 1) await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    assert.match(await search, /^\[DRIVER\] The search was cancelled/);
    assert.equal(turns, 20);
  });
});

Deno.test("no half of a secret is left where a line is cut, and none of one over several lines", async () => {
  await withStage(async ({ call, put }) => {
    const part = KEY.slice(0, 8);
    put("read", `${"x".repeat(1_980)}${KEY}\n`);
    put("grep", `${"y".repeat(285)}${KEY}\n`);
    put("piece", `${"z\n".repeat(32_760)}${KEY}\n`);
    put("pem", `key:\n${PEM.replaceAll("\n", "\r\n")}rest\n`);
    for (const path of ["read", "grep", "piece", "pem"]) {
      const texts = [
        await call("Read", { path }),
        await call("Read", { path, offset: path === "piece" ? 32_755 : 1 }),
        await call("Grep", { pattern: "xx|yy|sk|YW|MI", folder: path }),
      ];
      for (const text of texts) {
        assert.ok(!text.includes(part) && !text.includes("YWJj") && !text.includes("MIIE"), text);
      }
      assert.match(texts.join(), /\[redacted\]/);
    }
  });
});

Deno.test("a glob that multiplies is ended with the call, and nothing else stands still meanwhile", async () => {
  await withStage(async ({ call, put }) => {
    put(`${"a".repeat(60)}`, "a\n");
    for (const tool of ["Glob", "Grep"]) {
      const stop = new AbortController();
      const pattern = "{a,b}".repeat(190);
      const input = tool === "Glob" ? { pattern } : { pattern: "a", glob: pattern };
      const search = call(tool, input, stop.signal);
      let turns = 0;
      for (; turns < 20; turns += 1) await new Promise((resolve) => setTimeout(resolve, 5));
      stop.abort();
      assert.match(await search, /^\[DRIVER\] The search was cancelled/);
      assert.equal(turns, 20);
    }
  });
});

Deno.test("Grep says what it couldn't look into, and Glob when there may be more", async () => {
  await withStage(async ({ call, put }) => {
    put("bin", new Uint8Array([0, 1]));
    put("large", "large\n".repeat(800_000));
    const nowhere = await call("Grep", { pattern: "a", folder: "nowhere" });
    assert.equal(nowhere, '[NOT_FOUND] Cannot use "nowhere": There is no such file');
    assert.match(await call("Grep", { pattern: "a", folder: "bin" }), /^\[INVALID\]/);
    assert.match(await call("Grep", { pattern: "a", folder: "large" }), /^\[RESOURCE_EXHAUSTED\]/);
    assert.equal(
      await call("Grep", { pattern: "large" }),
      "No line fits\n(1 file over 4194304 bytes not looked into)",
    );
  });
});

Deno.test("Write makes a way of many folders, each looked at once", async () => {
  await withStage(async ({ call, get }) => {
    const path = `${"d/".repeat(400)}x`;
    assert.match(await call("Write", { path, content: "deep" }), /^Made d\/d\//);
    assert.equal(get(path), "deep");
    assert.match(await call("Write", { path: "n/../../up/x", content: "" }), /^\[PERMISSION\]/);
  });
});

/** Some tests run as root, whom no mode keeps out: a name that is too long is refused to everybody. */
Deno.test("what can't be written is told by its path", async () => {
  await withStage(async ({ call, put }) => {
    const path = "n".repeat(254);
    put("a", "x");
    assert.match(
      await call("Write", { path, content: "" }),
      new RegExp(`^\\[[A-Z]+\\] Cannot write "${path}": `),
    );
  });
});

Deno.test({
  name: "folders and files that can't be read are told, and a folder that can't be synced",
  ignore: Deno.uid() === 0,
  async fn() {
    await withStage(async ({ root, call, put, get }) => {
      put("closed/x", "x\n");
      put("open/closed", "x\n");
      put("blind/x", "x\n");
      Deno.chmodSync(`${root}/closed`, 0o000);
      Deno.chmodSync(`${root}/open/closed`, 0o000);
      Deno.chmodSync(`${root}/blind`, 0o300);
      try {
        const folder = "closed";
        assert.match(await call("Glob", { pattern: "**", folder }), /^\[PERMISSION\]/);
        assert.match(await call("Grep", { pattern: "x", folder }), /^\[PERMISSION\]/);
        assert.match(await call("Glob", { pattern: "**" }), /\(2 folders couldn't be read\)$/);
        assert.equal(
          await call("Grep", { pattern: "x" }),
          "No line fits\n(1 file couldn't be read)\n(2 folders couldn't be read)",
        );
        assert.equal(
          await call("Grep", { pattern: "x", folder: "open" }),
          "No line fits\n(1 file couldn't be read)",
        );
        const edited = await call("Edit", { path: "blind/x", old_text: "x", new_text: "y" });
        assert.match(edited, /^Edited blind\/x \(1 place\) \(its folder can't be synced/);
        assert.equal(get("blind/x"), "y\n");
      } finally {
        for (const each of ["closed", "blind"]) Deno.chmodSync(`${root}/${each}`, 0o700);
      }
    });
  },
});
