import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import { findNotes, NOTES_BYTES_MAX } from "./agents_md.ts";

/** A home with projects in it, gone afterwards. */
class Home {
  readonly root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-notes-" }));

  write(path: string, text: string): void {
    const file = `${this.root}/${path}`;
    Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    Deno.writeTextFileSync(file, text);
  }

  notes(cwd: string) {
    const places = { storage: disk, home: `${this.root}/home`, uid: Deno.uid() ?? 0 };
    Deno.mkdirSync(`${this.root}/${cwd}`, { recursive: true });
    return findNotes({ ...places, cwd: `${this.root}/${cwd}` });
  }

  async text(cwd: string): Promise<string | undefined> {
    const found = await this.notes(cwd);
    return found === undefined || "notice" in found ? undefined : found.text;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.root, { recursive: true });
  }
}

Deno.test("[R24] the nearest AGENTS.md upwards counts, and none below", async () => {
  using home = new Home();
  home.write("home/p/AGENTS.md", "outer");
  home.write("home/p/a/AGENTS.md", "inner");
  assert.equal(await home.text("home/p/a/b"), "inner");
  assert.equal(await home.text("home/p/c"), "outer");
  assert.equal(await home.text("home/p"), "outer");
  assert.equal(await home.text("home/q"), undefined);
});

Deno.test("the root of a repository and HOME end the search", async () => {
  using home = new Home();
  home.write("AGENTS.md", "of everyone");
  home.write("home/p/AGENTS.md", "of another project");
  home.write("home/p/repository/.git/HEAD", "ref");
  assert.equal(await home.text("home/p/repository/src"), undefined);
  assert.equal(await home.text("home/q"), undefined);
  home.write("home/p/repository/AGENTS.md", "its own");
  assert.equal(await home.text("home/p/repository/src"), "its own");
});

Deno.test("long notes are cut on a code point and said to be; consent is to the whole", async () => {
  using home = new Home();
  const long = "x" + "😀".repeat(NOTES_BYTES_MAX / 4);
  home.write("home/AGENTS.md", long);
  const found = await home.notes("home");
  assert.ok(found !== undefined && "text" in found);
  assert.ok(found.text.isWellFormed() && found.text.includes("the rest of AGENTS.md was left out"));
  assert.ok(new TextEncoder().encode(found.text).length < NOTES_BYTES_MAX + 100);
  assert.match(found.notices[0] ?? "", /has 32769 bytes; the agent is told its first 32768/);
  home.write("home/AGENTS.md", `${long}!`);
  const changed = await home.notes("home");
  assert.ok(changed !== undefined && "text" in changed);
  assert.notEqual(changed.projectFile.contentHash, found.projectFile.contentHash);
});

Deno.test("a link, a folder or bytes that aren't text are not used, which is told; empty notes are none", async () => {
  using home = new Home();
  home.write("home/secret", "key");
  Deno.mkdirSync(`${home.root}/home/a`);
  Deno.symlinkSync("../secret", `${home.root}/home/a/AGENTS.md`);
  Deno.mkdirSync(`${home.root}/home/b/AGENTS.md`, { recursive: true });
  home.write("home/c/AGENTS.md", "\0");
  for (const folder of ["a", "b", "c"]) {
    const found = await home.notes(`home/${folder}`);
    assert.ok(found !== undefined && "notice" in found, folder);
    assert.match(found.notice, /AGENTS\.md" is ignored: /);
  }
  home.write("home/d/AGENTS.md", " \n");
  assert.equal(await home.notes("home/d"), undefined);
});
