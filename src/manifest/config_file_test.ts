import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { SysError } from "../base/errors.ts";
import { writeStateFile } from "../base/state_file.ts";
import { type ConfigScope, parseConfig } from "./config_file.ts";
import { loadConfig, loadUserConfig } from "./load_config.ts";
import { formatProblem, Problems } from "./problems.ts";

function parsed(text: string, scope: ConfigScope = "user") {
  const problems = new Problems();
  const config = parseConfig(text, { file: "config.yaml", scope }, problems);
  return { config, problems: problems.list.map(formatProblem) };
}

const WHOLE = `daemon: {idle_timeout: 5m}
gc: {retention: 7d, max_runs: 50}
checkpoint: 4194304
on_unknown: skip
ping: {interval: 10s, timeout: 2s, misses: 5}
`;

Deno.test("every key of the design is taken", () => {
  assert.deepEqual(parsed(WHOLE), {
    config: {
      idleTimeoutMs: 300_000,
      retentionMs: 604_800_000,
      maxRuns: 50,
      checkpointBytes: 4_194_304,
      onUnknown: "skip",
      ping: { intervalMs: 10_000, timeoutMs: 2_000, misses: 5 },
    },
    problems: [],
  });
  assert.deepEqual(parsed("").config, { ping: {} });
  const never = parsed("gc: {retention: never, max_runs: never}").config;
  assert.deepEqual([never?.retentionMs, never?.maxRuns], [Infinity, Infinity]);
});

Deno.test("all mistakes are told at once, with place and nearest key", () => {
  const { config, problems } = parsed(`daemon:
  idle_timeot: 5m
gc: {retention: 30, max_runs: -1}
checkpoint: 0
on_unknown: retrry
ping: {interval: 1ms}
approval: always
`);
  assert.equal(config, undefined);
  assert.deepEqual(problems, [
    'config.yaml:2:3: Unknown key "idle_timeot" in daemon; did you mean `idle_timeout`?',
    "config.yaml:3:17: Expected a duration such as 500ms, 30s, 10m or 1h30m or never, got the number 30",
    "config.yaml:3:31: Expected a whole number from 0 on or never, got the number -1",
    "config.yaml:4:13: Expected a whole number from 1 on, got the number 0",
    'config.yaml:5:13: Expected one of ask, retry, skip, fail, got "retrry"; did you mean `retry`?',
    'config.yaml:6:18: Expected 1s to 1h, got "1ms"',
    'config.yaml:7:1: "approval" is not built yet; remove it',
  ]);
});

Deno.test("a project's file widens nothing", () => {
  const { config, problems } = parsed(WHOLE, "project");
  assert.equal(config, undefined);
  assert.deepEqual(problems.map((line) => line.replace(/;.*/, "")), [
    'config.yaml:1:1: A project can\'t set "daemon"',
    'config.yaml:2:1: A project can\'t set "gc"',
    'config.yaml:3:1: A project can\'t set "checkpoint"',
    'config.yaml:4:13: A project can set "on_unknown" to ask or fail alone, got "skip"',
  ]);
  assert.deepEqual(parsed("on_unknown: fail\nping: {misses: 9}", "project"), {
    config: { onUnknown: "fail", ping: { misses: 9 } },
    problems: [],
  });
});

async function diskWith(files: { [path: string]: string }): Promise<FaultyDisk> {
  const disk = new FaultyDisk();
  for (const [path, text] of Object.entries(files)) {
    await disk.makeFolder(path.slice(0, path.lastIndexOf("/")), 0o700);
    await writeStateFile(disk, path, text);
  }
  return disk;
}

function placesOn(storage: FaultyDisk) {
  return { storage, config: "/config", cwd: "/home/project", home: "/home", uid: 0 };
}

Deno.test("the project goes before the user, key by key", async () => {
  const disk = await diskWith({
    "/config/config.yaml": "on_unknown: skip\nping: {misses: 2, interval: 9s}",
    "/home/project/.rnix/config.yaml": "on_unknown: ask\nping: {misses: 7}",
  });
  assert.deepEqual(await loadConfig(placesOn(disk)), {
    onUnknown: "ask",
    ping: { misses: 7, intervalMs: 9_000 },
  });
  assert.deepEqual(await loadUserConfig(disk, "/config"), {
    onUnknown: "skip",
    ping: { misses: 2, intervalMs: 9_000 },
  });
  assert.deepEqual(await loadConfig(placesOn(await diskWith({ "/home/project/a": "" }))), {
    ping: {},
  });
});

Deno.test("mistakes of both files are one error with exit code 2", async () => {
  const disk = await diskWith({
    "/config/config.yaml": "gcc: {}",
    "/home/project/.rnix/config.yaml": "gc: {}",
  });
  await assert.rejects(loadConfig(placesOn(disk)), (thrown) => {
    assert.ok(thrown instanceof SysError);
    assert.equal(thrown.exitCode, 2);
    assert.match(thrown.message, /2 mistakes/);
    assert.match(thrown.message, /\.rnix\/config\.yaml:1:1/);
    return true;
  });
  await assert.rejects(loadUserConfig(disk, "/config"), { code: "INVALID", exitCode: 2 });
});
