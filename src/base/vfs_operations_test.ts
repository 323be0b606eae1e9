import assert from "node:assert/strict";
import { answererOf, placeOf, plainPath, type VfsOperation } from "./vfs_operations.ts";

Deno.test("a path loses what means nothing, and what names a resource is left as it is", () => {
  const plain: [string, string][] = [
    ["/", "/"],
    ["//proc//3/", "/proc/3"],
    ["/proc/./3/../4/status", "/proc/4/status"],
    ["/../..", "/"],
    ["//mnt/mcp//3-s/resources//file:///a/../b", "/mnt/mcp/3-s/resources/file:///a/../b"],
    ["/mnt/mcp/3-s/resources/", "/mnt/mcp/3-s/resources"],
    ["/mnt/mcp/3-s/resources/a%2Fb?x=1#y", "/mnt/mcp/3-s/resources/a%2Fb?x=1#y"],
  ];
  for (const [path, wanted] of plain) assert.equal(plainPath(path), wanted, path);
});

Deno.test("a place is known by its path alone", () => {
  assert.deepEqual(placeOf("/proc/3/status", undefined), {
    area: "proc",
    pid: 3,
    name: "status",
    rest: "",
  });
  assert.deepEqual(placeOf("/proc/self/results/ab", 7), {
    area: "proc",
    pid: 7,
    name: "results",
    rest: "ab",
  });
  assert.deepEqual(placeOf("/mnt/mcp/3-git-hub/tools", undefined), {
    area: "mcp",
    mount: "3-git-hub",
    owner: 3,
  });
  assert.deepEqual(placeOf("/mnt/mcp/github", 3), { area: "mcp", mount: "github" });
  for (const path of ["/proc/x", "/mnt/other", "/etc"]) {
    assert.equal(placeOf(path, undefined).area, "nowhere");
  }
});

Deno.test("only what a process at work has is asked of it", () => {
  const answerers: [VfsOperation, string, string][] = [
    ["list", "/", "stored"],
    ["list", "/mnt/mcp", "stored"],
    ["read", "/proc/3/context", "stored"],
    ["list", "/proc/3/results", "stored"],
    ["write", "/proc/3/results", "live"],
    ["read", "/proc/3/mounts", "either"],
    ["list", "/proc/3/fd", "either"],
    ["read", "/mnt/mcp/3-s", "live"],
    ["list", "/dev", "live"],
  ];
  for (const [operation, path, wanted] of answerers) {
    assert.equal(answererOf({ operation, path }), wanted, `${operation} ${path}`);
  }
});
