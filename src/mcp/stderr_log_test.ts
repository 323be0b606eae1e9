import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { LOG_LINE_CHARS_MAX, StderrLog } from "./stderr_log.ts";

const encoder = new TextEncoder();
const PATH = "/run/mounts/s.stderr.log";
const bytes = (text: string) => encoder.encode(text);

async function content(disk: FaultyDisk, path = PATH): Promise<string> {
  return new TextDecoder().decode(await disk.read(path));
}

Deno.test("lines are written as they come, cut anywhere, with what control characters they hold", async () => {
  const disk = new FaultyDisk();
  const log = new StderrLog({ storage: disk, path: PATH });
  const text = "one\r\n\u001b[31mtwo ü😀\u0007\nthree";
  for (const byte of bytes(text)) await log.write(new Uint8Array([byte]));
  assert.deepEqual(log.lastLines(), ["one", "\u001b[31mtwo ü😀\u0007", "three"]);
  await log.close();
  assert.equal(await content(disk), "one\n\u001b[31mtwo ü😀\u0007\nthree\n");
});

Deno.test("file and folder are the user's alone", async () => {
  const disk = new FaultyDisk();
  const log = new StderrLog({ storage: disk, path: PATH });
  await log.write(bytes("x\n"));
  assert.equal((await disk.stat(PATH))?.mode, 0o600);
  assert.equal((await disk.stat("/run/mounts"))?.mode, 0o700);
  await log.close();
});

Deno.test("[C09] secrets are gone from the file, the last lines and notes, also across chunks", async () => {
  const disk = new FaultyDisk();
  const redact = (text: string) => text.replaceAll("s3cr3t-canary", "***");
  const log = new StderrLog({ storage: disk, path: PATH, redact });
  await log.write(bytes("key s3cr3t-"));
  await log.write(bytes("canary end\n"));
  assert.equal(await log.note("[stdout] s3cr3t-canary"), "[stdout] ***");
  await log.write(bytes("open s3cr3t-canary"));
  assert.deepEqual(log.lastLines(), ["key *** end", "open ***"]);
  await log.close();
  assert.equal(await content(disk), "key *** end\n[stdout] ***\nopen ***\n");
});

Deno.test("[C09] a secret across the place where an endless line is cut is still seen", async () => {
  for (let shift = -20; shift <= 20; shift += 1) {
    const disk = new FaultyDisk();
    const redact = (text: string) => text.replaceAll("s3cr3t-canary", "***");
    const log = new StderrLog({ storage: disk, path: PATH, redact });
    await log.write(bytes("x".repeat(LOG_LINE_CHARS_MAX + shift) + "s3cr3"));
    await log.write(bytes("t-canary" + "y".repeat(LOG_LINE_CHARS_MAX) + "\n"));
    await log.close();
    const text = await content(disk);
    assert.ok(!text.replaceAll("\n", "").includes("canary"), `shift ${shift}`);
    assert.ok(text.includes("***"), `shift ${shift}`);
    assert.equal(text.match(/x/g)?.length, LOG_LINE_CHARS_MAX + shift);
  }
});

Deno.test("a full file becomes .1 and a new one is begun", async () => {
  const disk = new FaultyDisk();
  const log = new StderrLog({ storage: disk, path: PATH, bytesMax: 20 });
  for (const line of ["first-line", "second-line", "third-line", "fourth"]) {
    await log.write(bytes(`${line}\n`));
  }
  await log.close();
  assert.equal(await content(disk, `${PATH}.1`), "second-line\n");
  assert.equal(await content(disk), "third-line\nfourth\n");
});

Deno.test("a disk that fails costs lines, not the server, and the last lines are still known", async () => {
  const disk = new FaultyDisk({ fail: { at: 1, fault: "full", forGood: true } });
  const log = new StderrLog({ storage: disk, path: PATH });
  await log.write(bytes("a\nb\n"));
  await log.close();
  assert.deepEqual(log.lastLines(), ["a", "b"]);
  assert.equal(log.lostLines, 2);
});

Deno.test("only the last lines are kept, each in a bounded length, until they are forgotten", async () => {
  const log = new StderrLog();
  for (let line = 0; line < 100; line += 1) await log.write(bytes(`${line} ${"x".repeat(2000)}\n`));
  const lines = log.lastLines();
  assert.equal(lines.length, 20);
  assert.ok(lines.every((line) => line.length <= 500));
  assert.match(lines.at(-1) ?? "", /^99 /);
  log.forgetLines();
  assert.deepEqual(log.lastLines(), []);
});

Deno.test("a log that was closed goes on in the same file", async () => {
  const disk = new FaultyDisk();
  const log = new StderrLog({ storage: disk, path: PATH });
  await log.write(bytes("a\n"));
  await log.close();
  await log.write(bytes("b\n"));
  await log.close();
  assert.equal(await content(disk), "a\nb\n");
});

Deno.test("bytes left out are counted in one line; the lines they cut go whole", async () => {
  const disk = new FaultyDisk();
  const log = new StderrLog({ storage: disk, path: PATH });
  await log.write(bytes("one\nhalf of "));
  log.leaveOut(bytes("a secret\nxx"));
  log.leaveOut(bytes("yy"));
  await log.write(bytes("more of it"));
  await log.write(bytes(" and its end\nthree\n"));
  assert.equal(
    await content(disk),
    "one\n[rnix] 44 bytes of stderr were left out: it wrote too much\nthree\n",
  );
  log.leaveOut(bytes("rest"));
  await log.close();
  assert.match(await content(disk), /three\n\[rnix\] 4 bytes of stderr were left out.*\n$/);
});

Deno.test("a log with several names is one file under each, also once it was replaced and one of them has gone", async () => {
  const disk = new FaultyDisk();
  const log = new StderrLog({ storage: disk, path: PATH, bytesMax: 20 });
  const other = "/other/mounts/s.stderr.log";
  await log.write(bytes("first\n"));
  await log.addName(other);
  await log.write(bytes("second\n"));
  for (const path of [PATH, other]) assert.equal(await content(disk, path), "first\nsecond\n");
  await log.write(bytes("a longer third\n"));
  for (const path of [PATH, other]) {
    assert.equal(await content(disk, path), "a longer third\n");
    assert.equal(await content(disk, `${path}.1`), "first\nsecond\n");
  }
  await log.dropName(PATH);
  await log.close();
  await disk.remove("/run", { recursive: true });
  await log.write(bytes("4\n"));
  assert.equal(await content(disk, other), "a longer third\n4\n");
  assert.equal(await disk.stat("/run"), undefined);
  await log.close();
});

Deno.test("what lies at a new name already is kept beside it, but not where it is the same file", async () => {
  const disk = new FaultyDisk();
  const other = "/other/mounts/s.stderr.log";
  const before = new StderrLog({ storage: disk, path: other });
  await before.write(bytes("of before\n"));
  await before.close();
  for (const text of ["one\n", "two\n"]) {
    const log = new StderrLog({ storage: disk, path: PATH });
    await log.addName(other);
    await log.write(bytes(text));
    await log.close();
  }
  assert.equal(await content(disk, other), "one\ntwo\n");
  assert.equal(await content(disk, `${other}.1`), "of before\n");
});
