/** Servers that start slowly, noisily, wrongly or not at all: group B and D of the faults that concern the beginning. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { launchOf, plainServer, pythonServer } from "../servers/launch_server.ts";
import { answerOf, withBench } from "../servers/mount_bench.ts";
import type { Step } from "../servers/scripted_scenario.ts";
import { scene } from "./fault_scene.ts";

const python = pythonServer();

async function failure(work: Promise<unknown>): Promise<SysError> {
  const thrown = await work.then(() => undefined, (reason) => reason);
  assert.ok(thrown instanceof SysError, String(thrown));
  return thrown;
}

Deno.test({
  name: "a server in Python, made with the standard library alone, mounts and answers",
  ignore: python === undefined,
  async fn() {
    await withBench(async (bench) => {
      const mount = await bench.mount(python ?? launchOf("python3", []));
      assert.deepEqual(mount.facts.tools.map(({ name }) => name), ["count_words"]);
      assert.equal(
        answerOf(await bench.call(mount, "count_words", { text: "five words, one of 字" })),
        "5 words",
      );
      await mount.close();
    });
  },
});

Deno.test("a loop that writes bare results and never answers initialize is told so in a sentence", async () => {
  await withBench(async (bench) => {
    const error = await failure(
      bench.mount(plainServer("bare_results_server.ts", { startupTimeoutMs: 6_000 })),
    );
    assert.equal(
      error.message,
      `Server "s" did not answer initialize within 6s (startup_timeout); it wrote "null" to stdout, which is JSON without the "jsonrpc" and "id" that make it an answer`,
    );
    assert.match(error.hint ?? "", /"jsonrpc": "2.0", "id"/);
  });
});

scene(
  "[B03] a server that never answers initialize ends at startup_timeout, which the error names",
  { on: { initialize: { silent: true } } },
  async ({ bench, launch }) => {
    const error = await failure(bench.mount(launch({ startupTimeoutMs: 1_000 })));
    assert.equal(error.code, "TIMEOUT");
    assert.match(error.message, /within 1s \(startup_timeout\)/);
    assert.match(error.hint ?? "", /startup_timeout of server "s"/);
  },
);

scene(
  "[B03] the same limit covers the listing of tools",
  { on: { "tools/list": { silent: true } } },
  async ({ bench, launch }) => {
    const error = await failure(bench.mount(launch({ startupTimeoutMs: 6_000 })));
    assert.equal(error.code, "TIMEOUT");
    assert.match(error.message, /listing its tools within 6s \(startup_timeout\)/);
  },
);

scene(
  "[B05] a handshake of seconds is within the limit, the tools are there",
  { on: { "server/discover": { delayMs: 500 }, initialize: { delayMs: 2_000 } } },
  async ({ mounted }) => {
    await mounted((mount) => {
      assert.equal(mount.facts.tools.length, 1);
      return Promise.resolve();
    });
  },
);

scene(
  "[B05] a server that takes its time over the first byte is still asked for its era",
  { era: "modern", on: { "server/discover": { delayMs: 5_500 } } },
  async ({ mounted }) => {
    await mounted((mount) => {
      assert.equal(mount.facts.era, "modern");
      return Promise.resolve();
    }, { startupTimeoutMs: 30_000 });
  },
);

const WRONG: { [what: string]: { step: Step; error: RegExp } } = {
  "a version that nobody knows": {
    step: {
      result: {
        protocolVersion: "2030-01-01",
        capabilities: { tools: {} },
        serverInfo: { name: "s", version: "1" },
      },
    },
    error: /protocol version is not supported: 2030-01-01/,
  },
  "no serverInfo": {
    step: { result: { protocolVersion: "2025-06-18", capabilities: {} } },
    error: /its answer to initialize doesn't fit the protocol: serverInfo: expected object/,
  },
  "an error": {
    step: { error: { code: -32602, message: "No license" } },
    error: /failed during the MCP handshake: .*No license/,
  },
};

for (const [what, { step, error: wanted }] of Object.entries(WRONG)) {
  scene(
    `a server that answers initialize with ${what} is told so, without advice on what isn't wrong`,
    { on: { initialize: step } },
    async ({ bench, launch }) => {
      const error = await failure(bench.mount(launch()));
      assert.equal(error.code, "DRIVER");
      assert.match(error.message, wanted);
      assert.equal(error.hint, undefined);
    },
    ["stdio"],
  );
}

Deno.test("[B07] a whole command line as command gets the hint how to write it", async () => {
  await withBench(async (bench) => {
    const error = await failure(bench.mount(launchOf("npx -y pkg", [])));
    assert.equal(error.code, "NOT_FOUND");
    assert.match(error.hint ?? "", /args/);
  });
});

Deno.test("[D25] a command that is nowhere lists the PATH that was searched", async () => {
  await withBench(async (bench) => {
    const error = await failure(bench.mount(launchOf("no-such-server", [])));
    assert.equal(error.code, "NOT_FOUND");
    assert.match(`${error.message} ${error.hint}`, /\/usr\/local\/bin/);
  });
});

scene(
  "[B43] a stderr flood on every method that it doesn't know holds nothing up",
  {
    on: {
      "server/discover": {
        stderrBytes: 2_000_000,
        error: { code: -32601, message: "Method not found" },
      },
    },
  },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => assert.equal(answerOf(await bench.call(mount)), "called t"));
  },
  ["stdio"],
);

for (
  const [how, discover] of Object.entries({
    "exits on the probe": { exit: 1 },
    "answers the probe with a result of something else": { result: { tools: [] } },
    "answers the probe with an internal error": { error: { code: -32603, message: "boom" } },
    "says on the probe that it is not initialized": {
      error: { code: -32002, message: "Server not initialized" },
    },
    "answers the probe with null": { result: null },
    "is silent on the probe": { silent: true },
  })
) {
  scene(
    `a legacy server that ${how} mounts`,
    ({ starts }) => ({ starts, lives: [{ on: { "server/discover": discover } }] }),
    async ({ mounted, bench }) => {
      await mounted(async (mount) => {
        assert.equal(mount.facts.era, "legacy");
        assert.equal(answerOf(await bench.call(mount)), "called t");
      }, { startupTimeoutMs: 20_000 });
    },
    "exit" in discover ? ["stdio"] : undefined,
  );
}

for (const protocolVersion of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
  scene(
    `a server of ${protocolVersion} mounts and answers`,
    { protocolVersion },
    async ({ mounted, bench }) => {
      await mounted(async (mount) => {
        assert.equal(mount.facts.protocolVersion, protocolVersion);
        assert.equal(answerOf(await bench.call(mount)), "called t");
      });
    },
  );
}

scene(
  "a server of 2026-07-28 mounts and answers",
  { era: "modern" },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(mount.facts.protocolVersion, "2026-07-28");
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
  },
);

scene(
  "[B65] a server that announces only tools is asked for nothing else",
  { capabilities: { tools: {} } },
  async ({ mounted, methods }) => {
    await mounted((mount) => {
      assert.throws(() => mount.open("resources"), { code: "NOT_FOUND" });
      return Promise.resolve();
    });
    assert.deepEqual(methods().filter((method) => /resources|prompts/.test(method)), []);
  },
);

scene(
  "[B65] method not found for a list that was announced is an empty list",
  {
    capabilities: { tools: {}, resources: {} },
    on: {
      "tools/list": { error: { code: -32601, message: "Method not found" } },
      "resources/list": { error: { code: -32601, message: "Method not found" } },
    },
  },
  async ({ mounted }) => {
    await mounted(async (mount) => {
      const listed = mount.facts.tools.filter(({ name }) => !name.startsWith("resources/"));
      assert.deepEqual(listed, [], "but for rnix's own tools for resources");
      assert.equal(new TextDecoder().decode(await mount.open("resources").read()), "[]");
    });
  },
);

scene(
  "[B73] a server that is slow to start is ready before the first call goes out",
  { start: { delayMs: 1_500 } },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const outcomes = await Promise.all([bench.call(mount), bench.call(mount)]);
      assert.deepEqual(outcomes.map(answerOf), ["called t", "called t"]);
    });
  },
  ["stdio"],
);

scene(
  "[D23] a start that fails says why, in the error and in the server's log",
  { start: { stderr: "fatal: no database", exit: 4 } },
  async ({ bench, launch }) => {
    const path = "/run/mounts/s.stderr.log";
    const error = await failure(bench.mount(launch({ stderrLogPath: path })));
    assert.match(error.message, /exited with code 4 .*\n {2}fatal: no database/);
    assert.match(new TextDecoder().decode(await bench.disk.read(path)), /fatal: no database/);
  },
  ["stdio"],
);

scene(
  "banners on stdout are passed over, with one warning",
  { start: { noise: "Server v1.2 ready" }, on: { "tools/call": { noise: "calling…" } } },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)), "called t");
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
    assert.equal(bench.warnings.length, 1);
  },
  ["stdio"],
);
