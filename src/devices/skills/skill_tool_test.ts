import assert from "node:assert/strict";
import { SysError } from "../../base/errors.ts";
import { isJsonObject, type Json, type JsonObject, sha256Hex } from "../../base/json.ts";
import type { CallOptions } from "../../vfs/device.ts";
import { skillTool } from "./skill_tool.ts";

const OPTIONS: CallOptions = {
  signal: new AbortController().signal,
  cancelGraceMs: 0,
  callId: "t1.1",
  idempotencyKey: "k",
  onProgress: () => {},
};

/** A skill in a folder that is gone afterwards. */
class Shelf {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-skill-" }));
  files: { [path: string]: string } = {};

  put(path: string, text: string): this {
    Deno.mkdirSync(`${this.folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    Deno.writeTextFileSync(`${this.folder}/${path}`, text);
    this.files[path] = sha256Hex(text.replace(/^\ufeff/, ""));
    return this;
  }

  async ask(input: JsonObject): Promise<string> {
    const { folder, files } = this;
    const tool = skillTool([{ name: "s", body: "Do so.", folder, files }]);
    const answer = await tool.run(input, OPTIONS);
    assert.ok(answer.kind === "answer" && !answer.isError);
    return textIn(answer.content[0] ?? null);
  }

  async refusal(file: string): Promise<SysError> {
    const thrown = await this.ask({ name: "s", file }).then(() => undefined, (error) => error);
    assert.ok(thrown instanceof SysError, String(thrown));
    return thrown;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

function textIn(block: Json): string {
  const text = isJsonObject(block) ? block["text"] : undefined;
  return typeof text === "string" ? text : "";
}

Deno.test("a skill's instructions come with the names of its files, also when its folder is gone", async () => {
  using shelf = new Shelf().put("docs/a.md", "A");
  const before = await shelf.ask({ name: "s" });
  assert.match(before, /^Do so\.\n\nFiles of this skill.*:\n- docs\/a\.md$/);
  Deno.removeSync(`${shelf.folder}/docs`, { recursive: true });
  assert.equal(await shelf.ask({ name: "s" }), before);
  assert.equal((await shelf.refusal("docs/a.md")).code, "NOT_FOUND");
});

Deno.test("a file is read as long as it is what it was when the run began", async () => {
  using shelf = new Shelf().put("a.md", "A").put("b.md", "\ufeffB");
  assert.equal(await shelf.ask({ name: "s", file: "a.md" }), "A");
  assert.equal(await shelf.ask({ name: "s", file: "./b.md" }), "\ufeffB");
  Deno.writeTextFileSync(`${shelf.folder}/a.md`, "Ignore all that");
  const { code, message } = await shelf.refusal("a.md");
  assert.equal(code, "PERMISSION");
  assert.match(message, /not what it was when this run began/);
});

Deno.test("nothing but the files of the skill can be read, whatever the path", async () => {
  using shelf = new Shelf().put("a.md", "A");
  for (
    const file of [
      "../a.md",
      "/etc/passwd",
      "a.md/../../x",
      "/proc/self/root/etc/passwd",
      "A.MD",
      "",
      "__proto__",
      "a.md\0",
    ]
  ) {
    assert.equal((await shelf.refusal(file)).code, "NOT_FOUND", file);
  }
  Deno.removeSync(`${shelf.folder}/a.md`);
  Deno.symlinkSync("/etc/passwd", `${shelf.folder}/a.md`);
  assert.equal((await shelf.refusal("a.md")).code, "PERMISSION", "a link that came meanwhile");
});

Deno.test("the tool reads alone, and names the skills there are", () => {
  const source = { body: "", folder: "/", files: {} };
  const tool = skillTool([{ ...source, name: "a" }, { ...source, name: "b" }]);
  assert.equal(tool.effect, "read");
  assert.match(JSON.stringify(tool.definition.inputSchema), /"enum":\["a","b"\]/);
});
