/** Edges of HTTP that servers, proxies and gateways really have: stale connections, odd bodies, refusals in mid-session, streams that can't be resumed. */
import assert from "node:assert/strict";
import type { Mount } from "../../src/kernel/mount.ts";
import type { DeviceOutcome } from "../../src/vfs/device.ts";
import { answerOf } from "../servers/mount_bench.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";
import { calling, failure, overHttp, unknownOf } from "./http_stage.ts";

overHttp(
  "a server that closes each connection after its answer costs no call, and none is made twice",
  {
    ...calling({ http: { closeAfter: true } }),
  },
  async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      for (let call = 0; call < 30; call += 1) {
        assert.equal(answerOf(await bench.call(mount)), "called t");
        // As long as a connection may be kept without its end having been seen.
        if (call % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    assert.equal(server.count("tools/call"), 30);
  },
);

overHttp(
  "calls that would be made again share connections and are sent once all the same, others have one each",
  calling({ uses: 6, text: "called", then: { uses: 1, http: { socket: "close" }, then: {} } }),
  async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      for (const repeatable of [true, false]) {
        for (let call = 0; call < 3; call += 1) {
          assert.equal(answerOf(await bench.call(mount, "t", {}, { repeatable })), "called");
        }
      }
      assert.equal(
        unknownOf(await bench.call(mount, "t", {}, { repeatable: true })).cause,
        "disconnected",
      );
    });
    const connections = server.of("tools/call").map(({ connection }) => connection);
    assert.equal(connections.length, 7);
    const [first, , , ...others] = connections;
    assert.deepEqual(connections.filter((each) => each === first).length, 4);
    assert.equal(new Set(others).size, 4);
  },
);

const SHAPES: { [shape: string]: Scenario } = {
  "in pieces of one byte": { chunkBytes: 1, http: { form: "sse" } },
  "in pieces of three bytes, lines ending in CRLF": {
    chunkBytes: 3,
    crlf: true,
    http: { form: "sse" },
  },
  "over several data lines": { http: { form: "sse", dataLines: true } },
  "in lists of one": { batches: true, http: { form: "sse" } },
  "as JSON, in lists of one": { batches: true },
  "with ids as text": { idsAsText: true },
};

for (const [shape, scenario] of Object.entries(SHAPES)) {
  overHttp(`[B49] [B55] messages ${shape} are the same messages`, {
    ...scenario,
    ...calling({ text: "naïve 😀 字" }),
  }, async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const outcomes = await Promise.all([1, 2, 3].map(() => bench.call(mount)));
      assert.deepEqual(new Set(outcomes.map(answerOf)), new Set(["naïve 😀 字"]));
    });
  });
}

overHttp("content types with parameters and in capitals are what they say", {
  on: {
    "tools/list": { http: { headers: { "content-type": "Application/JSON; charset=UTF-8" } } },
    "tools/call": {
      http: { form: "sse", headers: { "content-type": "text/event-stream;charset=utf-8" } },
    },
  },
}, async ({ mounted, bench }) => {
  await mounted(async (mount) => assert.equal(answerOf(await bench.call(mount)), "called t"));
});

/** Answers to a call that say nothing of it: whether it ran isn't known. */
const SAY_NOTHING: { [what: string]: { status: number; body?: string } } = {
  "202": { status: 202 },
  "204": { status: 204 },
  "an empty body": { status: 200, body: "" },
  "JSON that is cut off": { status: 200, body: '{"jsonrpc":"2.0","id":' },
  "an answer to something else": { status: 200, body: '{"jsonrpc":"2.0","id":4711,"result":{}}' },
  "500": { status: 500 },
  "502 of a gateway": { status: 502, body: "<html>Bad gateway</html>" },
  "504 of a gateway": { status: 504 },
};

for (const [what, { status, body = "" }] of Object.entries(SAY_NOTHING)) {
  overHttp(`a call answered with ${what} is unknown at once, sent once, and the next is served`, {
    ...calling({
      http: { status, body, headers: { "content-type": "application/json" } },
      then: { text: "ok" },
    }),
  }, async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      const began = performance.now();
      assert.equal(unknownOf(await bench.call(mount)).cause, "disconnected");
      assert.ok(performance.now() - began < 60_000);
      assert.equal(server.count("tools/call"), 1);
      assert.equal(answerOf(await bench.call(mount)), "ok");
    }, { timeoutMs: 120_000, maxTimeoutMs: 120_000 });
    assert.equal(server.count("tools/call"), 2);
  });
}

for (const form of ["json", "sse"] as const) {
  overHttp(
    `[B47] an answer of 20 MB as ${form} is over the cap: unknown with the reason, the next is served`,
    {
      http: { form },
      ...calling({ text: "x", textTimes: 20_000_000, then: { text: "after" } }),
    },
    async ({ server, mounted, bench }) => {
      await mounted(async (mount) => {
        const outcome = unknownOf(await bench.call(mount));
        assert.match(outcome.error.message, /over 16777216 bytes/);
        assert.equal(answerOf(await bench.call(mount)), "after");
      });
      assert.equal(server.count("tools/call"), 2);
    },
  );
}

overHttp("404 without a session proves nothing: unknown, sent once", {
  http: { session: false },
  ...calling({ http: { status: 404 }, then: { text: "ok" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    unknownOf(await bench.call(mount));
    assert.equal(server.count("tools/call"), 1);
  });
});

overHttp("a login that ends in mid-session: the call was not made, and says what is missing", {
  on: {
    "tools/call": { http: { status: 401, headers: { "www-authenticate": 'Bearer realm="x"' } } },
    initialize: { uses: 1, then: { http: { status: 401 } } },
  },
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    const outcome = await bench.call(mount);
    assert.ok(outcome.kind === "not-sent", JSON.stringify(outcome));
    assert.match(outcome.error.message, /401/);
  });
  assert.equal(server.count("tools/call"), 1);
});

overHttp("[B23] a stream that can't be resumed: unknown, without asking for ever", {
  ...calling({ http: { events: ["id: e1\nretry: 10\ndata:"], cut: "end" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    unknownOf(await bench.call(mount));
    assert.ok(server.of("GET").length <= 10, `${server.count("GET")} GETs`);
  }, { timeoutMs: 30_000, maxTimeoutMs: 30_000 });
  assert.equal(server.count("tools/call"), 1);
});

overHttp("a DELETE that is never answered doesn't hold the unmounting up", {
  on: { DELETE: { http: { headersAfterMs: 30_000 } } },
}, async ({ server, bench, launch }) => {
  const mount = await bench.mount(launch());
  const began = performance.now();
  await mount.close();
  assert.ok(performance.now() - began < 25_000);
  assert.equal(server.count("DELETE"), 1);
});

for (const status of [404, 405, 501]) {
  overHttp(`a DELETE that is answered with ${status} is a goodbye all the same`, {
    on: { DELETE: { http: { status } } },
  }, async ({ mounted, bench }) => {
    await mounted(async (mount) => assert.equal(answerOf(await bench.call(mount)), "called t"));
  });
}

overHttp("a notification that is answered with 200 and a body is sent all the same", {
  on: { "notifications/initialized": { http: { status: 200, body: "{}" } } },
}, async ({ mounted, bench }) => {
  await mounted(async (mount) => assert.equal(answerOf(await bench.call(mount)), "called t"));
});

overHttp("a proxy of the environment is used and named, NO_PROXY goes past it", {}, async ({
  bench,
  mounted,
  launch,
}) => {
  const env = { HTTP_PROXY: "http://127.0.0.1:9" };
  const error = await failure(bench.mount(launch({ env, startupTimeoutMs: 10_000 })));
  assert.match(error.message, /proxy/);
  await mounted(
    async (mount) => assert.equal(answerOf(await bench.call(mount)), "called t"),
    { env: { ...env, NO_PROXY: "127.0.0.1" } },
  );
});

overHttp("[B19] a legacy session that is forgotten: the refused call is made once in a new one", {
  http: { kind: "legacy" },
  ...calling({ http: { status: 404 }, then: { text: "anew" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    assert.equal(answerOf(await bench.call(mount)), "anew");
  }, { transport: "sse" });
  assert.equal(server.count("initialize"), 2);
  assert.equal(server.count("tools/call"), 2);
});

overHttp(
  "[B11] a server that goes down under twenty calls: each is unknown, none is made again",
  {
    ...calling({ delayMs: 30_000 }),
  },
  async ({ server, mounted, bench }) => {
    await mounted(async (mount: Mount) => {
      const calls = Array.from({ length: 20 }, () => bench.call(mount));
      while (server.count("tools/call") < 20) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      await server.stop();
      const outcomes: DeviceOutcome[] = await Promise.all(calls);
      assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(["unknown"]));
      await server.restart({ tools: [{ name: "t", inputSchema: { type: "object" } }] });
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
    const keys = server.of("tools/call").map(({ body }) => body.match(/run\/t1\.\d+/)?.[0] ?? "");
    const twice = keys.filter((key, at) => keys.indexOf(key) !== at);
    // At most the last one: refused where the outage wasn't noticed before, and made in a new session.
    assert.deepEqual(twice.filter((key) => key !== "run/t1.20"), []);
    assert.ok(twice.length <= 1);
    assert.equal(new Set(keys).size, 21);
  },
);
