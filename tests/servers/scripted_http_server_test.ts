/** The scripted HTTP server does what a scenario says, seen by a client that knows nothing of MCP. */
import assert from "node:assert/strict";
import type { Fields } from "./rpc_stdio.ts";
import { scriptedHttpProcess } from "./launch_server.ts";
import { ScriptedHttpServer } from "./scripted_http_server.ts";
import type { Scenario } from "./scripted_scenario.ts";

async function withServer(
  scenario: Scenario,
  work: (server: ScriptedHttpServer) => Promise<void>,
): Promise<void> {
  const server = await ScriptedHttpServer.start(scenario);
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

function post(url: string, message: Fields, headers: { [name: string]: string } = {}) {
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });
}

const CALL = { id: 1, method: "tools/call", params: { name: "t" } };
const NO_SESSION: Scenario = { http: { session: false } };

Deno.test("a session begins with initialize, is asked for, forgotten, ended", async () => {
  await withServer({ on: { ping: { uses: 1, then: { http: { forget: true } } } } }, async (at) => {
    const first = await post(at.url, { id: 1, method: "initialize" });
    const session = first.headers.get("mcp-session-id") ?? "";
    assert.equal((await first.json()).result.serverInfo.name, "scripted");
    const held = { "mcp-session-id": session };
    const accepted = await post(at.url, { method: "notifications/initialized" }, held);
    assert.deepEqual([accepted.status, await accepted.text()], [202, ""]);
    const statuses: number[] = [];
    for (const headers of [{}, held, held, held]) {
      const response = await post(at.url, { id: 2, method: "ping" }, headers);
      statuses.push(response.status);
      await response.body?.cancel();
    }
    assert.deepEqual(statuses, [400, 404, 404, 404]);
    const again = await post(at.url, { id: 1, method: "initialize" });
    await again.body?.cancel();
    const ended = { "mcp-session-id": again.headers.get("mcp-session-id") ?? "" };
    for (const status of [200, 404]) {
      const response = await fetch(at.url, { method: "DELETE", headers: ended });
      await response.body?.cancel();
      assert.equal(response.status, status);
    }
    assert.equal(at.count("DELETE"), 2);
    assert.equal(at.count("ping"), 4);
  });
});

Deno.test("the n-th use takes the n-th step, the last one stays", async () => {
  const step = { uses: 2, text: "a", then: { http: { status: 503 }, then: { text: "b" } } };
  await withServer({ ...NO_SESSION, on: { "tools/call": step } }, async (at) => {
    const seen: (string | number)[] = [];
    for (let use = 0; use < 5; use += 1) {
      const response = await post(at.url, CALL);
      const body = await response.text();
      seen.push(response.ok ? JSON.parse(body).result.content[0].text : response.status);
    }
    assert.deepEqual(seen, ["a", "a", 503, "b", "b"]);
  });
});

Deno.test("statuses, headers and errors in place of an answer", async () => {
  const on: Scenario["on"] = {
    "tools/call": {
      http: { status: 429, headers: { "retry-after": "7" } },
      error: { code: -32000, message: "busy" },
    },
  };
  await withServer({ ...NO_SESSION, on }, async (at) => {
    const response = await post(at.url, CALL);
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "7");
    assert.deepEqual(await response.json(), {
      jsonrpc: "2.0",
      id: 1,
      error: { code: -32000, message: "busy" },
    });
  });
});

Deno.test("a stream has what comes before the answer, is cut, and goes on by GET", async () => {
  const on: Scenario["on"] = {
    "tools/call:t": { notify: "notifications/x", http: { events: [": hello", "id: 1\ndata:"] } },
    "tools/call:cut": { text: "kept", http: { cut: "end", answerOnGet: true } },
    "tools/call:reset": { http: { cut: "reset", events: ["id: 2\ndata:"] } },
  };
  await withServer({ ...NO_SESSION, on }, async (at) => {
    const whole = await post(at.url, CALL);
    assert.equal(whole.headers.get("content-type"), "text/event-stream");
    const events = (await whole.text()).split("\n\n");
    assert.deepEqual(events.slice(0, 2), [": hello", "id: 1\ndata:"]);
    assert.match(events[2] ?? "", /notifications\/x/);
    assert.match(events[3] ?? "", /called t/);
    assert.equal(await (await post(at.url, { ...CALL, params: { name: "cut" } })).text(), "");
    const stream = await fetch(at.url);
    const reader = stream.body?.getReader();
    const chunk = await reader?.read();
    assert.match(new TextDecoder().decode(chunk?.value), /kept/);
    await reader?.cancel();
    const broken = await post(at.url, { ...CALL, params: { name: "reset" } });
    await assert.rejects(() => broken.text());
    assert.equal((await fetch(at.url)).status, 405);
  });
});

Deno.test("a socket is reset once the request has been read", async () => {
  await withServer(
    { ...NO_SESSION, on: { "tools/call": { http: { socket: "reset" } } } },
    async (at) => {
      await assert.rejects(() => post(at.url, CALL));
      assert.equal(at.count("tools/call"), 1);
    },
  );
});

Deno.test("the server of 2024-11-05 answers on the stream", async () => {
  await withServer({ http: { kind: "legacy" } }, async (at) => {
    assert.equal((await post(at.url, CALL)).status, 405);
    const stream = await fetch(at.url);
    const lines = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    const first = (await lines?.read())?.value ?? "";
    const [, path] = first.match(/^event: endpoint\ndata: (\S+)\n\n$/) ?? [];
    assert.equal(await (await post(`${at.origin}${path}`, CALL)).text(), "Accepted");
    assert.match((await lines?.read())?.value ?? "", /^event: message\ndata: .*called t/);
    await lines?.cancel();
  });
});

Deno.test("an outage refuses connections, the port stays the same after it", async () => {
  await withServer(NO_SESSION, async (at) => {
    const { url } = at;
    await at.stop();
    await assert.rejects(() => post(url, CALL));
    await at.restart();
    assert.equal((await (await post(url, CALL)).json()).result.content[0].text, "called t");
  });
});

Deno.test("a server in a process of its own may exit", async () => {
  const file = await Deno.makeTempFile();
  const scenario: Scenario = { ...NO_SESSION, on: { "tools/call": { exit: 1 } } };
  await Deno.writeTextFile(file, JSON.stringify(scenario));
  const server = await scriptedHttpProcess(file);
  try {
    await assert.rejects(() => post(server.url, CALL));
  } finally {
    await server.end();
    await Deno.remove(file);
  }
});
