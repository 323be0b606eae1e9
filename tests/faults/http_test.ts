/** What only HTTP can do wrong: sessions that are forgotten, streams that are cut, statuses, redirects, outages; no call is made twice by any of it. */
import assert from "node:assert/strict";
import { addressed } from "../servers/launch_server.ts";
import { answerOf } from "../servers/mount_bench.ts";
import { ScriptedHttpServer } from "../servers/scripted_http_server.ts";
import { ONE_TOOL, until } from "./fault_scene.ts";
import { calling, failure, overHttp, unknownOf } from "./http_stage.ts";

overHttp("a mount sends its headers with every request, its session once it has one, and ends it", {
  http: { stream: true },
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    assert.equal(answerOf(await bench.call(mount)), "called t");
  }, { headers: { Authorization: "Bearer canary-1234567", "X-Team": "seven" } });
  for (const { headers, verb } of server.received) {
    assert.equal(headers["authorization"], "Bearer canary-1234567", verb);
    assert.equal(headers["x-team"], "seven", verb);
  }
  const [first] = server.of("initialize");
  assert.equal(first?.headers["mcp-session-id"], undefined, "[B21] no session is carried over");
  const [call] = server.of("tools/call");
  assert.ok(call?.headers["mcp-session-id"]);
  assert.equal(call?.headers["mcp-protocol-version"], "2025-11-25");
  const accept = call?.headers["accept"] ?? "";
  assert.ok(accept.includes("application/json") && accept.includes("text/event-stream"));
  const [ended] = server.of("DELETE");
  assert.equal(ended?.headers["mcp-session-id"], call?.headers["mcp-session-id"]);
});

overHttp(
  "[B21] two mounts of one server have a session each",
  {},
  async ({ server, mounted, bench }) => {
    await mounted(async (one) => {
      await mounted(async (other) => {
        assert.equal(answerOf(await bench.call(one)), "called t");
        assert.equal(answerOf(await bench.call(other)), "called t");
      });
    });
    const sessions = server.of("tools/call").map(({ headers }) => headers["mcp-session-id"]);
    assert.equal(new Set(sessions).size, 2);
  },
);

overHttp(
  "requests of 2026-07-28 carry the headers that the era requires",
  { era: "modern" },
  async ({
    server,
    mounted,
    bench,
  }) => {
    await mounted(async (mount) => {
      assert.equal(mount.facts.era, "modern");
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
    const [call] = server.of("tools/call");
    assert.equal(call?.headers["mcp-protocol-version"], "2026-07-28");
    assert.equal(call?.headers["mcp-method"], "tools/call");
    assert.equal(call?.headers["mcp-name"], "t");
    assert.equal(server.count("DELETE"), 0);
  },
);

overHttp(
  "a server without sessions is spoken to without one",
  { http: { session: false } },
  async ({
    server,
    mounted,
    bench,
  }) => {
    await mounted(async (mount) => assert.equal(answerOf(await bench.call(mount)), "called t"));
    assert.ok(server.received.every(({ headers }) => headers["mcp-session-id"] === undefined));
  },
);

overHttp("[B19] a forgotten session: the refused call is made once in a new session", {
  ...calling({ uses: 2, then: { http: { forget: true }, then: { text: "anew" } } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    const outcomes = [await bench.call(mount), await bench.call(mount), await bench.call(mount)];
    assert.deepEqual(outcomes.map(answerOf), ["called t", "called t", "anew"]);
    assert.equal(answerOf(await bench.call(mount)), "anew");
  });
  assert.equal(server.count("initialize"), 2);
  assert.equal(server.count("tools/call"), 5, "the refused one twice, all others once");
  const sessions = server.of("tools/call").map(({ headers }) => headers["mcp-session-id"]);
  assert.equal(new Set(sessions).size, 2);
});

overHttp("[B19] a server that forgets each session at once is not asked in a storm", {
  ...calling({ http: { forget: true } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    const outcome = await bench.call(mount);
    assert.ok(outcome.kind === "not-sent", JSON.stringify(outcome));
    assert.equal(outcome.error.code, "SESSION_EXPIRED");
  });
  assert.ok(server.count("tools/call") <= 2);
});

overHttp("[B13] a GET stream that the server ends cleanly costs nothing: tools stay, calls work", {
  http: { stream: true },
  on: { GET: { http: { endAfterMs: 100 } } },
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    await until(() => server.count("GET") > 1);
    assert.equal(mount.health.state, "connected");
    assert.equal(mount.facts.tools.length, 1);
    assert.equal(answerOf(await bench.call(mount)), "called t");
  });
  assert.equal(server.count("initialize"), 1);
  assert.ok(server.count("GET") < 10, `${server.count("GET")} streams`);
});

overHttp("news on the GET stream are heard: changed tools", {
  http: { stream: true },
  capabilities: { tools: { listChanged: true } },
  on: { "tools/call": { tools: [{ name: "new", inputSchema: { type: "object" } }] } },
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    await until(() => server.count("GET") > 0);
    await bench.call(mount);
    const changed = new Promise<string[]>((resolve) =>
      mount.onChange = (facts) => resolve(facts.tools.map(({ name }) => name))
    );
    await server.push({ method: "notifications/tools/list_changed" });
    assert.deepEqual(await changed, ["new"]);
  });
});

overHttp("[B23] a stream that ends before the answer fails the call at once, as unknown", {
  ...calling({ http: { cut: "end" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    const began = performance.now();
    const outcome = unknownOf(await bench.call(mount));
    assert.equal(outcome.cause, "disconnected");
    assert.ok(performance.now() - began < 60_000);
  }, { timeoutMs: 120_000, maxTimeoutMs: 120_000 });
  assert.equal(server.count("tools/call"), 1);
});

overHttp("[B23] a socket that breaks in mid-stream fails the call at once, as unknown", {
  ...calling({ send: [{ method: "notifications/x" }], http: { cut: "reset" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    assert.equal(unknownOf(await bench.call(mount)).cause, "disconnected");
  }, { timeoutMs: 30_000, maxTimeoutMs: 30_000 });
  assert.equal(server.count("tools/call"), 1);
});

overHttp("[B23] a stream with event ids goes on by GET after its end, and the call is made once", {
  ...calling({
    text: "after all",
    http: { events: ["id: e1\nretry: 50\ndata:"], cut: "end", answerOnGet: true },
  }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    assert.equal(answerOf(await bench.call(mount)), "after all");
  });
  assert.equal(server.count("tools/call"), 1);
  const resumed = server.of("GET").filter(({ headers }) => headers["last-event-id"] === "e1");
  assert.ok(resumed.length > 0);
});

for (const socket of ["reset", "close"] as const) {
  overHttp(
    `a socket that is ${socket} once the request is read: unknown, and never sent again, on a fresh connection or a used one`,
    {
      ...calling({ uses: 2, text: "ok", then: { http: { socket } } }),
    },
    async ({ server, mounted, bench }) => {
      await mounted(async (mount) => {
        assert.equal(answerOf(await bench.call(mount)), "ok");
        assert.equal(answerOf(await bench.call(mount)), "ok");
        for (let call = 0; call < 3; call += 1) {
          assert.equal(unknownOf(await bench.call(mount)).cause, "disconnected");
        }
      });
      assert.equal(server.count("tools/call"), 5);
    },
  );
}

overHttp("several events before the answer, comments and empty events among them, belong to it", {
  ...calling({
    text: "at last",
    progress: { everyMs: 10, count: 3 },
    http: { form: "sse", events: [": hello", "event: ping\ndata: {}", "data:", "id: 7\ndata:"] },
  }),
}, async ({ mounted, bench }) => {
  const told: string[] = [];
  await mounted(async (mount) => {
    const onProgress = (message: string) => told.push(message);
    assert.equal(answerOf(await bench.call(mount, "t", {}, { onProgress })), "at last");
  });
  assert.deepEqual(told, ["step 1", "step 2", "step 3"]);
});

overHttp(
  "[B67] a server that refuses the version with a list is asked once more with one of them",
  {
    on: {
      initialize: {
        http: {
          status: 400,
          body: JSON.stringify({
            jsonrpc: "2.0",
            id: null,
            error: {
              code: -32000,
              message:
                "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26)",
            },
          }),
        },
        then: {},
      },
    },
    protocolVersion: "2025-06-18",
  },
  async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(mount.facts.protocolVersion, "2025-06-18");
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
    assert.equal(server.count("initialize"), 2);
  },
);

overHttp("a server that needs a login is told so, and a call is not made without it", {
  on: { initialize: { http: { status: 401, headers: { "www-authenticate": "Bearer" } } } },
}, async ({ launch, bench }) => {
  const error = await failure(bench.mount(launch()));
  assert.equal(error.code, "UNAUTHENTICATED");
  assert.match(error.message, /401/);
});

overHttp("403 at the start says so and names nothing secret", {
  on: { initialize: { http: { status: 403, body: "no entry for canary-1234567" } } },
}, async ({ launch, bench }) => {
  const error = await failure(
    bench.mount(launch({ headers: { Authorization: "Bearer canary-1234567" } })),
  );
  assert.match(error.message, /403/);
});

for (const status of [404, 500, 503]) {
  overHttp(`an address that answers everything with ${status} fails the mount with that number`, {
    on: {
      "server/discover": { http: { status } },
      initialize: { http: { status } },
      GET: { http: { status } },
    },
  }, async ({ launch, bench }) => {
    const error = await failure(bench.mount(launch({ transport: "auto" })));
    assert.match(error.message, new RegExp(String(status)));
  });
}

for (const status of [429, 503]) {
  overHttp(`a call that is refused with ${status} isn't made again by itself`, {
    ...calling({ http: { status, headers: { "retry-after": "1" } }, then: { text: "ok" } }),
  }, async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.notEqual(outcome.kind === "answer" && !outcome.isError, true);
      assert.equal(server.count("tools/call"), 1);
      await until(() => false, 1_200);
      assert.equal(answerOf(await bench.call(mount)), "ok");
    });
    assert.equal(server.count("tools/call"), 2);
  });
}

overHttp(
  "an answer of another content type is no answer: the call's outcome is honest, the next is served",
  {
    ...calling({
      http: { status: 200, headers: { "content-type": "text/html" }, body: "<h1>Hello</h1>" },
      then: { text: "ok" },
    }),
  },
  async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      const outcome = await bench.call(mount);
      assert.ok(outcome.kind === "unknown", JSON.stringify(outcome));
      assert.equal(answerOf(await bench.call(mount)), "ok");
    });
    assert.equal(server.count("tools/call"), 2);
  },
);

overHttp("[B47] a body without end is given up at the cap", {
  ...calling({ http: { endlessBytes: 4 << 20 }, then: { text: "ok" } }),
}, async ({ mounted, bench }) => {
  await mounted(async (mount) => {
    const outcome = unknownOf(await bench.call(mount));
    assert.match(outcome.error.message, /16777216/);
    assert.equal(answerOf(await bench.call(mount)), "ok");
  }, { timeoutMs: 60_000, maxTimeoutMs: 60_000 });
});

overHttp("[B01] headers that never come are a call without an answer", {
  ...calling({ http: { headersAfterMs: 8_000 }, then: { text: "ok" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    assert.equal(unknownOf(await bench.call(mount)).cause, "timeout");
    assert.equal(answerOf(await bench.call(mount)), "ok");
  }, { timeoutMs: 2_000 });
  assert.equal(server.count("tools/call"), 2);
});

overHttp("[B63] cancelling a call of 2026-07-28 ends its stream, no other", {
  era: "modern",
  ...calling({ silent: true, send: [{ method: "notifications/x" }], then: { text: "ok" } }),
}, async ({ server, mounted, bench }) => {
  await mounted(async (mount) => {
    const stop = new AbortController();
    const cancelled = bench.call(mount, "t", {}, { signal: stop.signal, cancelGraceMs: 50 });
    await until(() => server.count("tools/call") === 1);
    const other = bench.call(mount);
    stop.abort();
    assert.equal(unknownOf(await cancelled).cause, "cancelled");
    assert.equal(answerOf(await other), "ok");
    await until(() => server.of("tools/call")[0]?.abandoned === true);
    assert.equal(server.of("tools/call")[0]?.abandoned, true);
  });
});

overHttp(
  "a redirect within the origin is followed, to another it isn't, and no header goes there",
  {
    ...calling({ http: { status: 307, headers: { location: "/other" } }, then: { text: "there" } }),
  },
  async ({ server, mounted, bench }) => {
    const elsewhere = await ScriptedHttpServer.start({ tools: ONE_TOOL, http: { session: false } });
    try {
      await mounted(async (mount) => {
        assert.equal(answerOf(await bench.call(mount)), "there");
      });
      assert.ok(server.received.some(({ target }) => target === "/other"));
      const away = { status: 307, headers: { location: elsewhere.url } };
      const sender = await ScriptedHttpServer.start({ on: { initialize: { http: away } } });
      try {
        const launch = addressed(sender.url, {
          headers: { Authorization: "Bearer canary-1234567" },
        });
        const error = await failure(bench.mount(launch));
        assert.match(error.message, /redirect|307/);
      } finally {
        await sender.stop();
      }
      assert.equal(elsewhere.received.length, 0);
    } finally {
      await elsewhere.stop();
    }
  },
);

overHttp(
  "[B09] a server that was down is in use again with the next call after it is up",
  {},
  async ({
    server,
    mounted,
    bench,
  }) => {
    await mounted(async (mount) => {
      await server.stop();
      const down = await bench.call(mount);
      assert.ok(down.kind === "not-sent", JSON.stringify(down));
      assert.equal(down.error.code, "DEVICE_DISCONNECTED");
      await server.restart();
      assert.equal(answerOf(await bench.call(mount)), "called t");
    });
    assert.equal(server.count("tools/call"), 1);
  },
);

overHttp("[B11] twenty parallel calls on a server that was away share one reconnect", {}, async ({
  server,
  mounted,
  bench,
}) => {
  await mounted(async (mount) => {
    server.forget();
    const before = server.count("initialize");
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => bench.call(mount)));
    assert.deepEqual(new Set(outcomes.map(answerOf)), new Set(["called t"]));
    assert.equal(server.count("initialize"), before + 1);
    assert.ok(server.count("tools/call") <= 40);
  });
});

for (const postStatus of [200, 202, 400, 404, 405]) {
  overHttp(
    `[D27] a server of 2024-11-05 that answers POST with ${postStatus} is found by its stream`,
    {
      http: { kind: "legacy", postStatus },
      protocolVersion: "2024-11-05",
    },
    async ({ mounted, bench }) => {
      await mounted(async (mount) => {
        assert.equal(mount.facts.protocolVersion, "2024-11-05");
        assert.equal(answerOf(await bench.call(mount)), "called t");
      }, { transport: "auto" });
    },
  );
}

overHttp(
  "a legacy stream that ends in mid-call: unknown, said at once; the next call has a new stream",
  {
    http: { kind: "legacy" },
    ...calling({ http: { cut: "end" }, then: { text: "anew" } }),
  },
  async ({ server, mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(unknownOf(await bench.call(mount)).cause, "disconnected");
      assert.equal(answerOf(await bench.call(mount)), "anew");
    }, { transport: "sse" });
    assert.equal(server.count("tools/call"), 2);
  },
);

overHttp("a legacy server that names an endpoint of another origin is not followed there", {
  http: { kind: "legacy", endpoint: "http://127.0.0.1:9/steal" },
}, async ({ bench, launch }) => {
  const error = await failure(bench.mount(launch({ transport: "sse", startupTimeoutMs: 5_000 })));
  assert.match(error.message, /origin|endpoint/);
});
