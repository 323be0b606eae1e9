import assert from "node:assert/strict";
import type { SysError } from "../base/errors.ts";
import type { Device } from "./device.ts";
import { MountTable } from "./mount_table.ts";

function device(): Device {
  return {
    open: () => {
      throw new Error("Not opened");
    },
    stat: () => {
      throw new Error("Not looked at");
    },
    list: () => Promise.reject(new Error("Not listed")),
  };
}

Deno.test("a path belongs to the longest mount point that begins it, by whole names", () => {
  const table = new MountTable();
  const [outer, inner] = [device(), device()];
  table.mount("/mnt", outer);
  table.mount("/mnt/mcp/3-git", inner);
  const at = (path: string) => {
    const { mountPoint, rest } = table.resolve(path);
    return [mountPoint, rest];
  };
  assert.deepEqual(at("/mnt/mcp/3-git/tools/a"), ["/mnt/mcp/3-git", "tools/a"]);
  assert.deepEqual(at("/mnt/mcp/3-git"), ["/mnt/mcp/3-git", ""]);
  assert.deepEqual(at("/mnt/mcp/3-github/tools"), ["/mnt", "mcp/3-github/tools"]);
  assert.equal(table.resolve("/mnt/x").device, outer);
  assert.equal(table.resolve("/mnt/mcp/3-git/tools").device, inner);
});

Deno.test("where nothing is mounted is NOT_FOUND, with what is", () => {
  const table = new MountTable();
  const hintOf = (path: string) => {
    try {
      table.resolve(path);
    } catch (thrown) {
      const { code, hint, device } = thrown as SysError;
      assert.deepEqual([code, device], ["NOT_FOUND", path]);
      return hint;
    }
    return assert.fail();
  };
  assert.equal(hintOf("/mnt/a"), "Mounted: nothing");
  table.mount("/mnt/c", device());
  table.mount("/mnt/b", device());
  assert.equal(hintOf("/mnt/a"), "Mounted: /mnt/b, /mnt/c");
  assert.equal(hintOf(""), "Mounted: /mnt/b, /mnt/c");
});

Deno.test("nothing is mounted over another, until that is gone", () => {
  const table = new MountTable();
  table.mount("/mnt/a", device());
  assert.throws(() => table.mount("/mnt/a", device()), { code: "ALREADY_MOUNTED" });
  table.unmount("/mnt/a");
  table.unmount("/mnt/a");
  assert.deepEqual(table.paths(), []);
  table.mount("/mnt/a", device());
  assert.deepEqual(table.paths(), ["/mnt/a"]);
});
