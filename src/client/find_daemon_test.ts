/** Daemons that are silent, lost, on their way out or unable to start, as a client meets them: real locks and sockets, short limits. */
import assert from "node:assert/strict";
import { type Clock, systemClock } from "../base/clock.ts";
import { LOCK_FILE, RECORD_FILE } from "../base/daemon_files.ts";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import { isStoppedProcess } from "../base/process_state.ts";
import type { Storage, StorageFile } from "../base/storage.ts";
import { PROTOCOL } from "../base/wire.ts";
import { connectDaemon } from "./connect.ts";
import { daemonStatus, endDaemon } from "./daemon_control.ts";
import { type ConnectOptions, findDaemon } from "./find_daemon.ts";

/** Gives a shell all the time that it needs on a busy machine. */
const PATIENT: Clock = { ...systemClock, after: (ms, fire) => systemClock.after(ms * 60, fire) };

/** A state folder whose lock is held here, as a daemon would. */
class Held implements AsyncDisposable {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-find-" }));
  readonly state = `${this.folder}/state`;
  readonly socket = `${this.folder}/d.sock`;
  #open: (() => unknown)[] = [];

  constructor() {
    Deno.mkdirSync(this.state, { mode: 0o700 });
  }

  async lock(): Promise<StorageFile> {
    const lock = await disk.open(`${this.state}/${LOCK_FILE}`, { create: true });
    assert.ok(lock.tryLock("exclusive"));
    this.#open.push(() => lock.close());
    return lock;
  }

  record(changes: { os_pid?: number; stopping?: true } = {}): void {
    const { socket } = this;
    const record = { socket, os_pid: Deno.pid, instance: "i", version: "1", protocol: PROTOCOL };
    Deno.writeTextFileSync(
      `${this.state}/${RECORD_FILE}`,
      JSON.stringify({ ...record, ...changes }),
    );
  }

  /** Somebody listens and never says a word. */
  silent(): void {
    const listener = Deno.listen({ transport: "unix", path: this.socket });
    this.#open.push(() => listener.close());
  }

  answering(): void {
    const server = Deno.serve(
      { path: this.socket, onListen: () => {} },
      () => Response.json({ protocol: PROTOCOL, os_pid: Deno.pid }),
    );
    this.#open.push(() => server.shutdown());
  }

  /** OS pid of a process that is stopped. */
  async stopped(): Promise<number> {
    const child = new Deno.Command("sleep", { args: ["60"] }).spawn();
    this.#open.push(async () => {
      child.kill("SIGKILL");
      await child.status;
    });
    Deno.kill(child.pid, "SIGSTOP");
    while (!await isStoppedProcess(child.pid, PATIENT));
    return child.pid;
  }

  options(changes: Partial<ConnectOptions> = {}): ConnectOptions {
    return {
      env: { RNIX_HOME: this.folder, PATH: "/usr/bin:/bin", RNIX_TEST_SECRET: "not to be said" },
      uid: Deno.uid() ?? 0,
      clock: systemClock,
      storage: disk,
      self: ["/bin/sh", "-c", "echo 'it was started' >&2; exit 1"],
      answerMs: 100,
      ...changes,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#open) await close();
    Deno.removeSync(this.folder, { recursive: true });
  }
}

/** The error that `work` rejects with, which must be one of exit 8. */
async function refusal(work: Promise<unknown>): Promise<SysError> {
  try {
    await work;
  } catch (thrown) {
    assert.ok(thrown instanceof SysError, String(thrown));
    assert.equal(thrown.exitCode, 8, thrown.message);
    return thrown;
  }
  throw new Error("It did not fail");
}

const CLIENTS = { findDaemon, daemonStatus, endDaemon, connectDaemon };

Deno.test("a stopped daemon is named, with what to do, by all who meet it; none says it isn't running", async () => {
  await using held = new Held();
  const osPid = await held.stopped();
  await held.lock();
  held.silent();
  held.record({ os_pid: osPid });
  for (const [name, meet] of Object.entries(CLIENTS)) {
    const { code, message, hint } = await refusal(meet(held.options({ clock: PATIENT })));
    assert.equal(code, "TIMEOUT", name);
    assert.equal(message, `The daemon (process ${osPid}) doesn't answer within 0.1 s`);
    assert.match(hint ?? "", new RegExp(`kill -CONT ${osPid} .*kill -9 ${osPid} `));
  }
});

Deno.test("a hung daemon is not said to be stopped", async () => {
  await using held = new Held();
  await held.lock();
  held.silent();
  held.record();
  const { hint } = await refusal(findDaemon(held.options()));
  assert.match(hint ?? "", new RegExp(`^Process ${Deno.pid} may be hung: kill -9 ${Deno.pid} `));
});

Deno.test("a held lock without a usable record, or without a socket, is never no daemon", async () => {
  await using held = new Held();
  await held.lock();
  const options = held.options({ answerMs: 30 });
  for (const text of [undefined, "", "{", "{}"]) {
    if (text !== undefined) Deno.writeTextFileSync(`${held.state}/${RECORD_FILE}`, text);
    for (const meet of [findDaemon, daemonStatus, endDaemon]) {
      const { message } = await refusal(meet(options));
      assert.match(message, /^A daemon holds the lock, and did not say within 0.03 s where/);
    }
  }
  held.record();
  // Long enough for each refusal by the system to come in time.
  const { message, hint } = await refusal(endDaemon(held.options({ answerMs: 2_000 })));
  assert.match(message, /^A daemon holds the lock, and could not be reached/);
  assert.match(hint ?? "", new RegExp(`kill -9 ${Deno.pid}`));
});

/** A disk on which the daemon's record is damaged at the first look only. */
function mendedLater(): Storage {
  let looks = 0;
  return {
    ...disk,
    read: (path) =>
      path.endsWith(RECORD_FILE) && ++looks === 1
        ? Promise.resolve(new TextEncoder().encode("{"))
        : disk.read(path),
  };
}

Deno.test("a record that is made again meanwhile is waited for", async () => {
  await using held = new Held();
  await held.lock();
  held.answering();
  held.record();
  const found = await findDaemon(held.options({ storage: mendedLater(), answerMs: 60_000 }));
  assert.equal(found?.status.os_pid, Deno.pid);
  found?.socket.close();
});

Deno.test("without the lock there is no daemon, whatever is left of one", async () => {
  await using held = new Held();
  assert.equal(await findDaemon(held.options()), undefined);
  (await held.lock()).close();
  held.record();
  assert.equal(await daemonStatus(held.options()), undefined);
  assert.equal(await endDaemon(held.options()), undefined);
});

Deno.test("a daemon on its way out is told as that", async () => {
  await using held = new Held();
  const lock = await held.lock();
  held.record({ stopping: true });
  const { message } = await refusal(daemonStatus(held.options()));
  assert.equal(message, `The daemon (process ${Deno.pid}) is on its way out`);
  assert.equal((await refusal(connectDaemon(held.options()))).message, message);
  lock.close();
  assert.equal(await daemonStatus(held.options()), undefined);
});

Deno.test("nothing is believed of a state folder that others may write", async () => {
  await using held = new Held();
  await held.lock();
  held.answering();
  held.record();
  Deno.chmodSync(held.state, 0o777);
  for (const meet of Object.values(CLIENTS)) {
    const { code, device, message } = await refusal(meet(held.options()));
    assert.deepEqual([code, device], ["PERMISSION", held.state]);
    assert.match(message, /others may write it/);
  }
});

const REASON = "[RESOURCE_EXHAUSTED] Write: /state/pids (No space left on device)";
const SAYS = [
  "/bin/sh",
  "-c",
  `echo "$RNIX_TEST_SECRET" >&2; echo '${REASON}' >&2; echo 'hint: Free space' >&2; exit 1`,
];

Deno.test("why a daemon can't start reaches the user through its log, or without one", async () => {
  await using held = new Held();
  const log = `${held.state}/daemon.log`;
  const spoils: { [name: string]: () => void } = {
    "a log": () => {},
    "a full disk": () => Deno.symlinkSync("/dev/full", log),
    "no right to write": () => Deno.mkdirSync(log),
  };
  for (const [name, spoil] of Object.entries(spoils)) {
    spoil();
    const options = held.options({ self: SAYS });
    const { code, message, hint } = await refusal(connectDaemon(options));
    assert.equal(code, "RESOURCE_EXHAUSTED", name);
    assert.equal(
      message,
      "The daemon can't start: Write: /state/pids (No space left on device)",
      name,
    );
    assert.equal(hint, "Free space", name);
    Deno.removeSync(log);
  }
});

Deno.test("a state folder that can't be made is the reason, with exit code 8", async () => {
  await using held = new Held();
  const storage: Storage = {
    ...disk,
    makeFolder: () => Promise.reject(new SysError("PERMISSION", "Read-only file system")),
  };
  const { code, message } = await refusal(connectDaemon(held.options({ storage })));
  assert.deepEqual([code, message], ["PERMISSION", "Read-only file system"]);
});
