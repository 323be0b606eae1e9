import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { FakeSystem, report } from "../../tests/doubles/fake_system.ts";
import { SplitSystem } from "./split_system.ts";

const OBSERVER = { onEvent: () => {} };

/** A system whose daemon, if one runs, and whose state folder are fakes; counts how often a daemon would be started. */
function split(daemon?: FakeSystem) {
  const folder = new FakeSystem();
  const started = new FakeSystem();
  let starts = 0;
  const system = new SplitSystem({
    live() {
      starts += 1;
      return Promise.resolve(started);
    },
    found: () => Promise.resolve(daemon),
    reader: () => Promise.resolve(folder),
  });
  return { system, folder, started, starts: () => starts };
}

async function refusal(work: Promise<unknown>): Promise<[string, number | undefined, string]> {
  try {
    await work;
  } catch (thrown) {
    assert.ok(thrown instanceof SysError);
    return [thrown.code, thrown.exitCode, thrown.message];
  }
  throw new Error("It did not fail");
}

Deno.test("what is at work is its daemon's, without a look at the state folder", async () => {
  const daemon = new FakeSystem();
  daemon.play = () => report();
  const { system, folder, starts } = split(daemon);
  await system.attach("3", "now", OBSERVER);
  await system.signal("3", "TERM");
  assert.deepEqual(daemon.asked, ["attach 3 from now", "signal 3 TERM"]);
  assert.deepEqual([folder.asked, starts()], [[], 0]);
});

Deno.test("no daemon is started to say that a run isn't at work, or has ended", async () => {
  const { system, folder, starts } = split();
  folder.ended = report({ state: "suspended", reason: "limit" });
  const idle = ["INVALID", 2, "Run 0f3a9c2e is suspended"];
  assert.deepEqual(await refusal(system.attach("3", "now", OBSERVER)), idle);
  assert.deepEqual(await refusal(system.signal("3", "PAUSE")), idle);
  folder.ended = report();
  const over = ["INVALID", 2, "Run 0f3a9c2e has ended"];
  assert.deepEqual(await refusal(system.attach("3", "now", OBSERVER)), over);
  assert.deepEqual(
    await refusal(system.signal("3", "TERM")),
    ["INVALID", 2, "The run has ended already"],
  );
  assert.equal(starts(), 0);
});

Deno.test("how the mounts of runs at work fare is the daemon's to say", async () => {
  const mount = { pid: 3, agent: "a", server: "git", transport: "stdio", tools: 1 };
  const rows = (status: "connected" | "unmounted") => [
    { ...mount, mount: "3-git", protocol_version: "2025-11-25", status },
  ];
  const daemon = new FakeSystem();
  daemon.health = [{ mount: "3-git", state: "waiting", since_ms: 5, attempts: 2 }];
  const { system, folder } = split(daemon);
  folder.mounted = rows("connected");
  const [row] = await system.mounts();
  assert.deepEqual([row?.status, row?.since_ms, row?.attempts], ["waiting", 5, 2]);
  folder.mounted = rows("unmounted");
  assert.deepEqual(await system.mounts(), rows("unmounted"));
  assert.deepEqual(daemon.asked, ["mountHealth"]);
  const alone = split();
  alone.folder.mounted = rows("connected");
  assert.deepEqual(await alone.system.mounts(), rows("connected"));
});

/** Knows no run. */
class Empty extends FakeSystem {
  override report(run: string): Promise<undefined> {
    return Promise.reject(new SysError("NOT_FOUND", `There is no run "${run}"`, { exitCode: 2 }));
  }
}

Deno.test("nor to say that there is none", async () => {
  let starts = 0;
  const system = new SplitSystem({
    live: () => Promise.resolve((starts += 1, new FakeSystem())),
    found: () => Promise.resolve(undefined),
    reader: () => Promise.resolve(new Empty()),
  });
  for (const work of [system.attach("3", "now", OBSERVER), system.signal("3", "KILL")]) {
    assert.deepEqual(await refusal(work), ["NOT_FOUND", 2, 'There is no run "3"']);
  }
  assert.equal(starts, 0);
});

Deno.test("a suspended run is ended by a daemon, started for it", async () => {
  const { system, folder, started, starts } = split();
  folder.ended = report({ state: "suspended", reason: "paused" });
  await system.signal("3", "TERM");
  assert.deepEqual([started.asked, starts()], [["signal 3 TERM"], 1]);
});
