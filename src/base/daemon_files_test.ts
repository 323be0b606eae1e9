import assert from "node:assert/strict";
import {
  fallbackFolder,
  readDaemonRecord,
  RECORD_FILE,
  secureSocketFolder,
  secureStateFolder,
  SOCKET_BYTES_MAX,
  socketFolderFault,
  socketPath,
  stateFolderFault,
} from "./daemon_files.ts";
import { disk } from "./disk.ts";
import { SysError } from "./errors.ts";
import { writeStateFile } from "./state_file.ts";
import type { FileFacts } from "./storage.ts";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";

const FOLDER: FileFacts = {
  kind: "folder",
  sizeBytes: 0,
  modifiedMs: 0,
  uid: 1000,
  mode: 0o700,
};

Deno.test("a socket's name is that of its state folder, wherever it is", () => {
  const path = socketPath("/home/u/.local/state/rnix", "/run/user/1000/rnix", 1000);
  assert.match(path, /^\/run\/user\/1000\/rnix\/[0-9a-f]{16}\.sock$/);
  assert.notEqual(socketPath("/other", "/run/user/1000/rnix", 1000), path);
});

Deno.test("[A7] a path over the system's limit goes to the short fallback, counted in bytes", () => {
  const room = SOCKET_BYTES_MAX - "/0123456789abcdef.sock".length;
  const longest = `/${"x".repeat(room - 1)}`;
  assert.ok(socketPath("/s", longest, 7).startsWith(longest));
  assert.ok(socketPath("/s", `${longest}x`, 7).startsWith(`${fallbackFolder(7)}/`));
  assert.ok(socketPath("/s", `/${"ü".repeat(room / 2)}x`, 7).startsWith("/tmp/rnix-7/"));
});

Deno.test("[A7] a folder that is a link, another user's or open to others is refused with its reason", () => {
  assert.equal(socketFolderFault(FOLDER, 1000), undefined);
  assert.equal(socketFolderFault(undefined, 1000), "it isn't there");
  assert.equal(socketFolderFault({ ...FOLDER, kind: "link" }, 1000), "it is a link");
  assert.equal(socketFolderFault({ ...FOLDER, kind: "file" }, 1000), "it isn't a folder");
  assert.equal(socketFolderFault({ ...FOLDER, uid: 0 }, 1000), "it belongs to user 0");
  assert.equal(socketFolderFault({ ...FOLDER, mode: 0o710 }, 1000), "others may enter it");
});

Deno.test("the folder is made if need be, and an error names it and what to do", async () => {
  const disk = new FaultyDisk();
  const uid = 1000;
  await disk.makeFolder("/tmp", 0o777);
  await secureSocketFolder(disk, "/tmp/rnix-1000", (await disk.stat("/tmp"))?.uid ?? uid);
  assert.equal((await disk.stat("/tmp/rnix-1000"))?.kind, "folder");
  await disk.makeFolder("/tmp/open", 0o777);
  await assert.rejects(
    secureSocketFolder(disk, "/tmp/open", (await disk.stat("/tmp"))?.uid ?? uid),
    (thrown) =>
      thrown instanceof SysError && thrown.code === "PERMISSION" &&
      thrown.device === "/tmp/open" && /others may enter it/.test(thrown.message) &&
      /XDG_RUNTIME_DIR/.test(thrown.hint ?? ""),
  );
});

Deno.test("without a record there is no daemon", async () => {
  assert.equal(await readDaemonRecord(new FaultyDisk(), "/state"), undefined);
});

Deno.test("a state folder that others may write, or of another user, is refused with its reason", () => {
  assert.equal(stateFolderFault(undefined, 1000), undefined, "it is still to be made");
  assert.equal(stateFolderFault(FOLDER, 1000), undefined);
  assert.equal(stateFolderFault({ ...FOLDER, mode: 0o755 }, 1000), undefined);
  assert.equal(stateFolderFault({ ...FOLDER, mode: 0o720 }, 1000), "others may write it");
  assert.equal(stateFolderFault({ ...FOLDER, mode: 0o702 }, 1000), "others may write it");
  assert.equal(stateFolderFault({ ...FOLDER, uid: 0 }, 1000), "it belongs to user 0");
  assert.equal(stateFolderFault({ ...FOLDER, kind: "file" }, 1000), "it isn't a folder");
});

Deno.test("of a state folder that is a link, what it leads to counts", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "rnix-state-" });
  const uid = Deno.uid() ?? 0;
  try {
    Deno.mkdirSync(`${folder}/real`, { mode: 0o700 });
    Deno.symlinkSync(`${folder}/real`, `${folder}/state`);
    await secureStateFolder(disk, `${folder}/state`, uid);
    await secureStateFolder(disk, `${folder}/nothing`, uid);
    Deno.chmodSync(`${folder}/real`, 0o777);
    await assert.rejects(
      secureStateFolder(disk, `${folder}/state`, uid),
      (thrown) =>
        thrown instanceof SysError && thrown.code === "PERMISSION" && thrown.exitCode === 8 &&
        /others may write it/.test(thrown.message) && /chmod go-w/.test(thrown.hint ?? ""),
    );
    Deno.chmodSync(`${folder}/real`, 0o700);
    await assert.rejects(secureStateFolder(disk, `${folder}/state`, uid + 1), /belongs to user/);
    Deno.removeSync(`${folder}/real`);
    await assert.rejects(
      secureStateFolder(disk, `${folder}/state`, uid),
      (thrown) =>
        thrown instanceof SysError && thrown.code === "NOT_FOUND" && thrown.exitCode === 8,
    );
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("a record that says nothing of a daemon is an error, whatever JSON it is", async () => {
  const disk = new FaultyDisk();
  await disk.makeFolder("/state", 0o700);
  for (const text of ["", "{", "null", "[]", "{}", '{"socket":7}', '{"socket":"/s","os_pid":1}']) {
    await writeStateFile(disk, `/state/${RECORD_FILE}`, text);
    await assert.rejects(readDaemonRecord(disk, "/state"), SysError, text);
  }
  const record = { socket: "/s", os_pid: 1, instance: "i", version: "1", protocol: 1 };
  await writeStateFile(disk, `/state/${RECORD_FILE}`, JSON.stringify(record));
  assert.deepEqual(await readDaemonRecord(disk, "/state"), record);
});
