import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { settle, VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { type FollowedFile, followLines, LOOK_MS } from "./followed_lines.ts";

const PATH = "/run/log";
const BEFORE = "/run/log.1";

/** A file that a test writes and replaces while it is read. */
class Writer {
  readonly clock = new VirtualClock();
  readonly disk = new FaultyDisk();
  live = true;

  static async make(): Promise<Writer> {
    const writer = new Writer();
    await writer.disk.makeFolder("/run", 0o700);
    return writer;
  }

  async write(text: string): Promise<void> {
    const file = await this.disk.open(PATH, { create: true });
    file.append(new TextEncoder().encode(text));
    file.close();
  }

  async replace(): Promise<void> {
    await this.disk.rename(PATH, BEFORE);
  }

  read(more: Partial<FollowedFile> = {}): AsyncGenerator<string | undefined> {
    return followLines({
      storage: this.disk,
      clock: this.clock,
      path: PATH,
      before: BEFORE,
      isLive: () => Promise.resolve(this.live),
      ...more,
    });
  }
}

async function all(lines: AsyncIterable<string | undefined>): Promise<string[]> {
  const found: string[] = [];
  for await (const line of lines) if (line !== undefined) found.push(line);
  return found;
}

Deno.test("without a writer there is what is there, the replaced file first, and half a line where it is asked for", async () => {
  const writer = await Writer.make();
  await writer.write("1\n2\n");
  await writer.replace();
  await writer.write("3\n4");
  assert.deepEqual(await all(writer.read({ isLive: undefined })), ["1", "2", "3"]);
  assert.deepEqual(await all(writer.read({ isLive: undefined, withHalf: true })), [
    "1",
    "2",
    "3",
    "4",
  ]);
  const none = await Writer.make();
  assert.deepEqual(await all(none.read({ isLive: undefined })), []);
});

Deno.test("lines are given as they are written, in pieces too, until the writer is gone", async () => {
  const writer = await Writer.make();
  const found = all(writer.read());
  await writer.clock.advance(LOOK_MS);
  await writer.write("late to come\nha");
  await writer.clock.advance(LOOK_MS);
  await writer.write("lf\n");
  await writer.clock.advance(LOOK_MS);
  await writer.write("last\n");
  writer.live = false;
  await writer.clock.advance(LOOK_MS);
  assert.deepEqual(await found, ["late to come", "half", "last"]);
});

Deno.test("a replacement while following loses nothing and gives nothing twice, whenever it comes", async () => {
  for (let lines = 0; lines < 4; lines += 1) {
    for (let after = 0; after < 4; after += 1) {
      const writer = await Writer.make();
      const expected: string[] = [];
      const put = async (count: number) => {
        for (let line = 0; line < count; line += 1) {
          expected.push(String(expected.length));
          await writer.write(`${expected.length - 1}\n`);
        }
      };
      await put(2);
      const found = all(writer.read());
      await writer.clock.advance(LOOK_MS);
      for (let round = 0; round < 3; round += 1) {
        await put(lines);
        await writer.replace().catch(() => {});
        await settle();
        await put(after);
        await writer.clock.advance(LOOK_MS);
      }
      writer.live = false;
      await writer.clock.advance(LOOK_MS);
      assert.deepEqual(await found, expected, `${lines} before, ${after} after`);
    }
  }
});

Deno.test("a file that is replaced while it is opened is neither left out nor read twice", async () => {
  const writer = await Writer.make();
  await writer.write("old\n");
  await writer.replace();
  await writer.write("middle\n");
  let replaced = false;
  const { disk } = writer;
  const openToRead = disk.openToRead.bind(disk);
  disk.openToRead = async (path) => {
    const file = await openToRead(path);
    if (path === PATH && !replaced) {
      replaced = true;
      await writer.replace();
      await writer.write("new\n");
    }
    return file;
  };
  assert.deepEqual(await all(writer.read({ isLive: undefined })), ["middle", "new"]);
});

Deno.test("an abort ends the reading at once", async () => {
  const writer = await Writer.make();
  const stop = new AbortController();
  const found = all(writer.read({ signal: stop.signal }));
  await writer.clock.advance(LOOK_MS / 2);
  stop.abort();
  assert.deepEqual(await found, []);
  assert.equal(writer.clock.pending, 0);
});
