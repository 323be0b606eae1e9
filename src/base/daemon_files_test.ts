import assert from "node:assert/strict";
import {
  fallbackFolder,
  readDaemonRecord,
  secureSocketFolder,
  SOCKET_BYTES_MAX,
  socketFolderFault,
  socketPath,
} from "./daemon_files.ts";
import { SysError } from "./errors.ts";
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
