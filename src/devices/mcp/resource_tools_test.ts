/** A server's resources as tools for its model, over servers in memory. */
import assert from "node:assert/strict";
import { MemoryServer, type Responder, text, tool } from "../../../tests/doubles/mcp_connection.ts";
import { call, mounted, notSent } from "../../../tests/doubles/mcp_mount.ts";
import type { JsonObject } from "../../base/json.ts";

const READ = "resources%2Fread";
const LIST = "resources%2Flist";

function serverWith(
  on: { [method: string]: Responder },
  tools: JsonObject[] = [tool("t")],
): MemoryServer {
  return new MemoryServer({
    initialize: () => ({
      result: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: "r", version: "1" },
      },
    }),
    "tools/call": () => text("of the server"),
    ...on,
  }, tools);
}

const reading = (...contents: JsonObject[]) =>
  serverWith({ "resources/read": () => ({ result: { contents } }) });

Deno.test("where a server has resources its model can list and read them, by tools of class read and with stable names", async () => {
  const { mount } = await mounted(serverWith({}));
  const [own, list, read] = mount.facts.tools;
  assert.deepEqual([own?.name, list?.name, read?.name], ["t", "resources/list", "resources/read"]);
  assert.deepEqual([list?.effect, read?.effect], ["read", "read"]);
  for (const each of [list, read]) {
    assert.match(each?.modelName ?? "", /^mcp__s__resources_(list|read)_[0-9a-f]{8}$/);
  }
  const again = await mounted(serverWith({}));
  assert.deepEqual(again.mount.facts.tools, mount.facts.tools, "the same at every start");
  const without = await mounted(new MemoryServer());
  assert.deepEqual(without.mount.facts.tools.map(({ name }) => name), ["t"]);
  assert.throws(() => without.mount.open(`tools/${READ}`), { code: "NOT_FOUND" });
});

Deno.test("they are not among the server's own tools, and one of its own with such a name goes before", async () => {
  const named = [tool("resources_list"), tool("resources/read")];
  const { mount } = await mounted(serverWith({}, named));
  const names = mount.facts.tools.map(({ modelName }) => modelName);
  assert.equal(new Set(names).size, 3);
  assert.deepEqual(await mount.list("tools"), ["resources%2Fread", "resources_list"]);
  const outcome = await call(mount, READ);
  assert.ok(outcome.kind === "answer");
  assert.deepEqual(outcome.content, [{ type: "text", text: "of the server" }]);
});

Deno.test("resources and templates are listed together; no templates is no error", async () => {
  const resources = [{ uri: "note://a", name: "a" }];
  const resourceTemplates = [{ uriTemplate: "note://{id}", name: "notes" }];
  const listing = { "resources/list": () => ({ result: { resources } }) };
  const both = await mounted(serverWith({
    ...listing,
    "resources/templates/list": () => ({ result: { resourceTemplates } }),
  }));
  const outcome = await both.clock.run(call(both.mount, LIST));
  assert.ok(outcome.kind === "answer" && !outcome.isError);
  const [block] = outcome.content as { text: string }[];
  assert.deepEqual(JSON.parse(block?.text ?? ""), { resources, resourceTemplates });
  for (const code of [-32601, -32603]) {
    const broken = { "resources/templates/list": () => ({ error: { code, message: "No" } }) };
    const one = await mounted(serverWith({ ...listing, ...broken }));
    const alone = await one.clock.run(call(one.mount, LIST));
    assert.ok(alone.kind === "answer" && !alone.isError);
    assert.match(JSON.stringify(alone.content), /note:\/\/a/);
  }
});

Deno.test("contents keep what they are: text and blobs as resources, images and audio as such", async () => {
  const { mount, clock } = await mounted(reading(
    { uri: "a:1", mimeType: "text/plain", text: "words" },
    { uri: "a:2", mimeType: "image/png", blob: "AAAA" },
    { uri: "a:3", mimeType: "audio/wav", blob: "BBBB" },
    { uri: "a:4", mimeType: "application/zip", blob: "CCCC" },
  ));
  const outcome = await clock.run(call(mount, READ, { uri: "a:1" }));
  assert.ok(outcome.kind === "answer");
  assert.deepEqual(outcome.content, [
    { type: "resource", resource: { uri: "a:1", mimeType: "text/plain", text: "words" } },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "audio", data: "BBBB", mimeType: "audio/wav" },
    { type: "resource", resource: { uri: "a:4", mimeType: "application/zip", blob: "CCCC" } },
  ]);
});

Deno.test("what the server refuses is an error to the model; arguments that don't fit aren't sent", async () => {
  const refusing = serverWith({
    "resources/read": () => ({ error: { code: -32602, message: "There is no a:1" } }),
  });
  const { mount, clock } = await mounted(refusing);
  const outcome = await clock.run(call(mount, READ, { uri: "a:1" }));
  assert.ok(outcome.kind === "answer" && outcome.isError);
  assert.match(JSON.stringify(outcome.content), /-32602.*There is no a:1/);
  for (const input of [{}, { uri: 1 }, { uri: "" }, { uri: "a:1", more: 1 }, []]) {
    assert.equal(notSent(await clock.run(call(mount, READ, input))).code, "INVALID");
  }
  assert.equal(refusing.methods.filter((method) => method === "resources/read").length, 1);
});

Deno.test("an answer that doesn't come leaves the outcome unknown, so that the read is made again", async () => {
  const silent = await mounted(serverWith({ "resources/read": () => undefined }));
  const late = await silent.clock.run(call(silent.mount, READ, { uri: "a:1" }));
  assert.ok(late.kind === "unknown" && late.cause === "timeout");
  const dying = await mounted(serverWith({
    "resources/read": (_, server) => {
      server.die("it exited with code 1");
      return undefined;
    },
  }));
  const gone = await dying.clock.run(call(dying.mount, READ, { uri: "a:1" }));
  assert.ok(gone.kind === "unknown" && gone.cause === "disconnected", JSON.stringify(gone));
  const stop = new AbortController();
  const held = await mounted(serverWith({ "resources/read": () => undefined }));
  const work = call(held.mount, READ, { uri: "a:1" }, { signal: stop.signal });
  await held.clock.advance(10);
  stop.abort();
  const cancelled = await held.clock.run(work);
  assert.ok(cancelled.kind === "unknown" && cancelled.cause === "cancelled");
});

Deno.test("a node is read after it was written, and not once it is closed", async () => {
  const { mount, clock } = await mounted(reading({ uri: "a:1", text: "words" }));
  const file = mount.open(`tools/${READ}`);
  await assert.rejects(file.read(), { code: "INVALID" });
  const signal = new AbortController().signal;
  const options = { signal, cancelGraceMs: 0, callId: "t1.1", idempotencyKey: "k" };
  await clock.run(file.write({ uri: "a:1" }, options));
  assert.match(new TextDecoder().decode(await file.read()), /words/);
  file.close();
  await assert.rejects(file.read(), { code: "INVALID" });
});
