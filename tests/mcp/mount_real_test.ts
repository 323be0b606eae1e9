/** Real servers, mounted by the real driver: the official ones, one of the new era, eight at once, and one that fails among them. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { Json } from "../../src/base/json.ts";
import type { Mount } from "../../src/kernel/mount.ts";
import {
  inShell,
  launchOf,
  ledgerServer,
  modernServer,
  npmServer,
  scripted,
} from "../servers/launch_server.ts";
import { withBench } from "../servers/mount_bench.ts";

const never = new AbortController().signal;

async function call(mount: Mount, tool: string, input: Json): Promise<string> {
  const file = mount.open(`tools/${tool}`);
  const outcome = await file.write(input, {
    signal: never,
    cancelGraceMs: 1_000,
    callId: "t1.0",
    idempotencyKey: "run/t1.0",
  });
  assert.ok(outcome.kind === "answer" && !outcome.isError, JSON.stringify(outcome));
  return new TextDecoder().decode(await file.read());
}

Deno.test("server-everything: mounted, listed, called, its resources read", async () => {
  await withBench(async (bench) => {
    const mount = await bench.mount(npmServer("everything", ["stdio"]));
    assert.equal(mount.facts.era, "legacy");
    assert.equal(mount.facts.protocolVersion, "2025-11-25");
    assert.match(await call(mount, "echo", { message: "héllo 😀" }), /héllo 😀/);
    const root = JSON.parse(new TextDecoder().decode(await mount.open("").read()));
    assert.deepEqual(root, ["tools", "resources"]);
    const listed: { uri: string }[] = JSON.parse(
      new TextDecoder().decode(await mount.open("resources").read()),
    );
    const [first] = listed;
    assert.ok(first !== undefined);
    const path = `resources/${encodeURIComponent(first.uri)}`;
    assert.ok((await mount.open(path).read()).length > 0);
    await mount.close();
  });
});

Deno.test("server-filesystem: writes and reads a file", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await withBench(async (bench) => {
      const mount = await bench.mount(npmServer("filesystem", [folder]));
      await call(mount, "write_file", { path: `${folder}/a.txt`, content: "from rnix" });
      assert.equal(await Deno.readTextFile(`${folder}/a.txt`), "from rnix");
      assert.match(await call(mount, "read_text_file", { path: `${folder}/a.txt` }), /from rnix/);
      await mount.close();
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a server of 2026-07-28 made with the SDK", async () => {
  await withBench(async (bench) => {
    const mount = await bench.mount(modernServer());
    assert.equal(mount.facts.era, "modern");
    assert.equal(mount.facts.protocolVersion, "2026-07-28");
    const outcome = await mount.open("tools/add").write({ a: 2, b: 3 }, {
      signal: never,
      cancelGraceMs: 1_000,
      callId: "t1.0",
      idempotencyKey: "k",
    });
    assert.ok(outcome.kind === "answer");
    assert.deepEqual(outcome.structured, { sum: 5 });
    assert.equal(outcome.warnings, undefined);
    await mount.close();
  });
});

Deno.test("eight servers are started together: each comes up once all of them have begun", async () => {
  const begun = await Deno.makeTempFile();
  try {
    await withBench(async (bench) => {
      const body =
        `echo >> ${begun}; until [ $(wc -l < ${begun}) -ge 8 ]; do sleep 0.05; done; exec $CMD`;
      const mounts = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          bench.mount(
            inShell(scripted({}, { server: `s${index}`, startupTimeoutMs: 120_000 }), body),
          )),
      );
      await Promise.all(mounts.map((mount) => mount.close()));
    });
  } finally {
    await Deno.remove(begun);
  }
});

Deno.test("[D23] one of eight fails: its error names it with its stderr, its log is there, the others can be closed", async () => {
  await withBench(async (bench) => {
    const launches = Array.from({ length: 8 }, (_, index) =>
      scripted(
        index === 3 ? { start: { stderr: "fatal: no token", exit: 2 } } : {},
        { server: `s${index}`, stderrLogPath: `/run/mounts/s${index}.stderr.log` },
      ));
    const settled = await Promise.allSettled(launches.map((launch) => bench.mount(launch)));
    const failed = settled.filter((each) => each.status === "rejected").map((each) => each.reason);
    assert.equal(failed.length, 1);
    const [error] = failed;
    assert.ok(error instanceof SysError);
    assert.equal(error.device, "/mnt/mcp/1-s3");
    assert.equal(
      error.message,
      `Server "s3" exited with code 2 before it answered; last lines of its stderr:\n  fatal: no token`,
    );
    const log = new TextDecoder().decode(await bench.disk.read("/run/mounts/s3.stderr.log"));
    assert.match(log, /fatal: no token/);
    await Promise.all(settled.map((each) => each.status === "fulfilled" ? each.value.close() : 0));
  });
});

Deno.test("[B01] a call that is never answered ends at its limit; the server lives on", async () => {
  await withBench(async (bench) => {
    const mount = await bench.mount(ledgerServer("/dev/null", [], { timeoutMs: 2_000 }));
    const outcome = await mount.open("tools/slow").write({ ms: 5_000 }, {
      signal: never,
      cancelGraceMs: 100,
      callId: "t1.0",
      idempotencyKey: "k",
    });
    assert.ok(outcome.kind === "unknown" && outcome.cause === "timeout");
    assert.equal(await call(mount, "slow", { ms: 10 }), "slept 10 ms");
    await mount.close();
    assert.equal(await outcome.late, undefined);
  });
});

Deno.test("giving up while servers start leaves none", async () => {
  await withBench(async (bench) => {
    const stop = new AbortController();
    const starting = Promise.allSettled(
      Array.from(
        { length: 3 },
        (_, index) => bench.mount(launchOf("sleep", ["60"], { server: `s${index}` }), stop.signal),
      ),
    );
    while ((await bench.left()).length < 3);
    stop.abort();
    assert.ok((await starting).every((each) => each.status === "rejected"));
  });
});
