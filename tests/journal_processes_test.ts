/** The journal on the real disk, between real processes: the lease, `kill -9`, a stopped holder, a full file system. */
import assert from "node:assert/strict";
import { type Clock, systemClock } from "../src/base/clock.ts";
import { disk } from "../src/base/disk.ts";
import {
  createJournal,
  openJournal,
  probeLease,
  readEnds,
  readRun,
  verifyRun,
} from "../src/journal/mod.ts";
import { testJournal } from "./suites/journal_suite.ts";
import { RUN_ID, taker } from "./doubles/sample_entries.ts";
import { patientClock } from "./doubles/patient_clock.ts";
import { VirtualClock } from "./doubles/virtual_clock.ts";
import type { Entry } from "../src/journal/entry.ts";
import type { Storage } from "../src/base/storage.ts";
import { SysError } from "../src/base/errors.ts";

const WRITER = new URL("./servers/journal_writer.ts", import.meta.url).pathname;

async function inTemporaryFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rnix-journal-" });
  try {
    await work(`${folder}/runs/${RUN_ID}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Starts a writer and waits until it has made `entries` of this life durable; gives the process and the last seq it told. */
async function writerWith(folder: string, entries: number) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-read", "--allow-write", WRITER, folder],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let told = "";
  const lines = () => told.split("\n").slice(0, -1);
  while (lines().length < entries) {
    const { value, done } = await reader.read();
    assert.equal(done, false, "the writer ended by itself");
    told += value;
  }
  /** Kills it, and reads what it had still told: the seq of the last barrier that passed. */
  const kill = async (): Promise<number> => {
    child.kill("SIGKILL");
    for (let read = await reader.read(); !read.done; read = await reader.read()) told += read.value;
    await child.status;
    return Number(lines().at(-1));
  };
  return { child, kill };
}

function open(folder: string, clock: Clock = systemClock) {
  return openJournal(disk, folder, { clock, osPid: Deno.pid, instance: "test" });
}

/** The real disk, until it is told to be full. */
function breakable(): { storage: Storage; breakWriting: () => void } {
  let isFull = false;
  const full = () => {
    if (isFull) {
      throw new SysError("RESOURCE_EXHAUSTED", "No space left on device", { device: "x" });
    }
  };
  const storage: Storage = {
    ...disk,
    async open(path, options) {
      const file = await disk.open(path, options);
      const append = file.append.bind(file);
      file.append = (bytes) => {
        full();
        append(bytes);
      };
      return file;
    },
  };
  return { storage, breakWriting: () => isFull = true };
}

testJournal("file journal on the real disk", async () => {
  const parent = await Deno.makeTempDir({ prefix: "rnix-journal-" });
  const folder = `${parent}/${RUN_ID}`;
  const { storage, breakWriting } = breakable();
  const clock = new VirtualClock();
  const journal = await createJournal(storage, folder, taker(clock));
  return {
    journal,
    clock,
    breakWriting,
    readBack: async () => {
      await journal.close();
      const entries: Entry[] = [];
      const opened = await openJournal(disk, folder, taker(clock));
      await opened.replay({ entry: (entry) => void entries.push(entry) });
      await opened.journal.close();
      return entries;
    },
    clean: () => Deno.remove(parent, { recursive: true }),
  };
});

Deno.test("[C25] kill -9 of the holder frees the lease, and loses nothing that a barrier promised", async () => {
  await inTemporaryFolder(async (folder) => {
    let least = 0;
    for (let life = 1; life <= 4; life += 1) {
      const { kill } = await writerWith(folder, 10 * life);
      const told = await kill();
      assert.ok(told >= least + 10 * life);
      const seqs: number[] = [];
      const opened = await open(folder);
      await opened.replay({ entry: ({ seq }) => void seqs.push(seq) });
      await opened.journal.close();
      assert.ok(seqs.length >= told, `${seqs.length} entries, ${told} told`);
      assert.ok(seqs.every((seq, index) => seq === index + 1));
      least = told;
    }
    assert.equal((await verifyRun(disk, folder)).ok, true);
  });
});

Deno.test("[A15] a run held by another process is refused with its OS pid, and can be read meanwhile", async () => {
  await inTemporaryFolder(async (folder) => {
    const { child, kill } = await writerWith(folder, 5);
    try {
      assert.deepEqual(await probeLease(disk, folder), { osPid: child.pid, instance: "writer" });
      await assert.rejects(open(folder), {
        code: "INVALID",
        message: new RegExp(`held by process ${child.pid}`),
      });
      let entries = 0;
      await readRun(disk, folder, () => void (entries += 1));
      assert.ok(entries >= 5);
      assert.equal((await readEnds(disk, folder)).first?.seq, 1);
      assert.equal((await verifyRun(disk, folder)).ok, true);
    } finally {
      await kill();
    }
  });
});

Deno.test("a stopped holder is refused with a hint", async () => {
  await inTemporaryFolder(async (folder) => {
    const { child, kill } = await writerWith(folder, 1);
    try {
      child.kill("SIGSTOP");
      await assert.rejects(open(folder, patientClock), {
        hint: new RegExp(`kill -CONT ${child.pid}`),
      });
    } finally {
      await kill();
    }
  });
});

Deno.test("files and folders of a run are for their owner alone", async () => {
  await inTemporaryFolder(async (folder) => {
    const journal = await createJournal(disk, folder, taker(systemClock));
    await journal.putBlob(new Uint8Array(10));
    await journal.saveCheckpoint({ versions: {}, seq: 0, state: null });
    await journal.close();
    assert.equal((await disk.stat(folder))?.mode, 0o700);
    for (const name of await disk.list(folder)) {
      const mode = (await disk.stat(`${folder}/${name}`))?.mode;
      assert.equal(mode, name === "blobs" ? 0o700 : 0o600, name);
    }
    const [blob] = await disk.list(`${folder}/blobs`);
    assert.equal((await disk.stat(`${folder}/blobs/${blob}`))?.mode, 0o600);
  });
});
