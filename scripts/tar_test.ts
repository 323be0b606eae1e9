import assert from "node:assert/strict";
import { tar, type TarFile } from "./tar.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Unpacks with the tar of the system, as the executable does. */
async function unpacked(archive: Uint8Array, folder: string): Promise<string> {
  const child = new Deno.Command("tar", {
    args: ["-xof", "-"],
    cwd: folder,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(archive);
  await writer.close();
  const { code, stderr } = await child.output();
  assert.equal(code, 0);
  return new TextDecoder().decode(stderr);
}

Deno.test("the system's tar unpacks every size of file, and which of them can be executed", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "rnix-tar-" });
  try {
    const files: TarFile[] = [0, 1, 511, 512, 513, 70_000].map((size) => ({
      name: `file-${size}.mjs`,
      content: crypto.getRandomValues(new Uint8Array(Math.min(size, 65_536))),
      executable: size === 513,
    }));
    assert.equal(await unpacked(tar(files), folder), "");
    assert.deepEqual(
      [...Deno.readDirSync(folder)].map(({ name }) => name).toSorted(),
      files.map(({ name }) => name).toSorted(),
    );
    for (const { name, content, executable } of files) {
      assert.deepEqual(Deno.readFileSync(`${folder}/${name}`), content, name);
      const { mode } = Deno.statSync(`${folder}/${name}`);
      assert.equal(((mode ?? 0) & 0o100) !== 0, executable, name);
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("the same files give the same bytes, whole blocks of them", () => {
  const made = () => tar([{ name: "a", content: bytes("a") }, { name: "b", content: bytes("") }]);
  assert.deepEqual(made(), made());
  assert.equal(made().length, (2 + 1 + 2) * 512);
});

Deno.test("a name that would lie elsewhere or be cut is refused", () => {
  for (const name of ["", "folder/a", "a b", "ü", "a".repeat(101)]) {
    assert.throws(() => tar([{ name, content: bytes("") }]), /Cannot put a file named/, name);
  }
  tar([{ name: "a".repeat(100), content: bytes("") }]);
});
