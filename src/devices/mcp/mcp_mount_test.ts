/** A mount over servers in memory, on a virtual clock: its tree, its calls, and servers that die and come back. */
import assert from "node:assert/strict";
import { MemoryServer, text, tool } from "../../../tests/doubles/mcp_connection.ts";
import {
  answering,
  call,
  driverOf,
  dyingServer,
  mounted,
  notSent,
  options,
} from "../../../tests/doubles/mcp_mount.ts";
import { FaultyDisk } from "../../../tests/doubles/faulty_disk.ts";
import { settle } from "../../../tests/doubles/virtual_clock.ts";
import type { Json } from "../../base/json.ts";
import type { MountFacts } from "../../kernel/mount.ts";
import { SendError } from "../../mcp/connection.ts";
import type { Device } from "../../vfs/device.ts";

const decoder = new TextDecoder();

async function readText(mount: Device, path: string): Promise<string> {
  return decoder.decode(await mount.open(path).read());
}

Deno.test("the tree: root, tools, a tool by its name, encoded or the model's", async () => {
  const { mount } = await mounted(answering("hi", [tool("t"), tool("a/b c")]));
  assert.equal(await readText(mount, ""), '["tools"]');
  const listed: Json = JSON.parse(await readText(mount, "/tools/"));
  assert.deepEqual(listed, JSON.parse(JSON.stringify(mount.facts.tools)));
  const [modelName = ""] = mount.facts.tools.map((each) => each.modelName);
  for (const name of ["a/b c", "a%2Fb%20c", modelName]) mount.open(`tools/${name}`).close();
  assert.throws(() => mount.open("tools/none"), {
    code: "NOT_FOUND",
    hint: "There is: tools, tools/a/b c, tools/t",
  });
  assert.throws(() => mount.open("resources"), { code: "NOT_FOUND" });
});

Deno.test("resources are listed and read where the server has them", async () => {
  const { mount } = await mounted(
    new MemoryServer({
      initialize: () => ({
        result: {
          protocolVersion: "2025-11-25",
          capabilities: { resources: {} },
          serverInfo: { name: "r", version: "1" },
        },
      }),
      "resources/list": () => ({ result: { resources: [{ uri: "note://a b", name: "a" }] } }),
      "resources/read": (params) => ({
        result: {
          contents: [{ uri: params["uri"] ?? "", text: `text of ${String(params["uri"])}` }],
        },
      }),
    }),
  );
  assert.equal(await readText(mount, ""), '["resources"]');
  assert.deepEqual(JSON.parse(await readText(mount, "resources")), [{
    uri: "note://a b",
    name: "a",
  }]);
  assert.equal(await readText(mount, "resources/note%3A%2F%2Fa%20b"), "text of note://a b");
});

Deno.test("write calls, read gives the last answer, close ends the use of the file", async () => {
  const { mount } = await mounted(answering("hello"));
  const file = mount.open("tools/t");
  await assert.rejects(() => file.read(), {
    code: "INVALID",
    message: /no call has been answered on this descriptor/,
    hint: /rnix write prints the answer itself/,
  });
  assert.deepEqual(await file.write({}, options), {
    kind: "answer",
    isError: false,
    content: [{ type: "text", text: "hello" }],
  });
  assert.equal(decoder.decode(await file.read()), "hello");
  file.close();
  file.close();
  await assert.rejects(() => file.read(), { code: "INVALID", message: /is closed/ });
  await assert.rejects(() => file.write({}, options), { code: "INVALID" });
  assert.equal(notSent(await mount.open("tools").write({}, options)).code, "INVALID");
});

Deno.test("arguments that don't fit are not sent, and the error names the path", async () => {
  const server = answering("x", [
    tool("t", { inputSchema: { type: "object", properties: { a: { type: "number" } } } }),
  ]);
  const { mount } = await mounted(server);
  const error = notSent(await call(mount, "t", { a: "1" }));
  assert.equal(error.code, "INVALID");
  assert.match(error.message, /\/a must be number/);
  assert.match(notSent(await call(mount, "t", [1])).message, /must be object/);
  assert.ok(!server.methods.includes("tools/call"));
  assert.equal((await call(mount, "t", null)).kind, "answer");
});

Deno.test("a failed mount names device and pid", async () => {
  const { clock, mount } = driverOf([undefined]);
  const work = mount();
  await assert.rejects(() => clock.run(work), {
    code: "DRIVER",
    syscall: "Mount",
    device: "/mnt/mcp/3-s",
    pid: 3,
    message: "it does not start",
  });
});

Deno.test("a call lost with its server is unknown; the next use starts the server again, at once", async () => {
  const { clock, mount, starts } = await mounted(dyingServer(), answering("back"));
  const lost = await clock.run(call(mount));
  assert.ok(lost.kind === "unknown" && lost.cause === "disconnected");
  assert.equal((await clock.run(call(mount))).kind, "answer");
  assert.deepEqual(starts, [0, starts[1] ?? 0]);
  assert.ok((starts[1] ?? 0) < 1_000);
});

Deno.test("[B11] twenty calls on a dead server share one start", async () => {
  const first = answering("one");
  const { clock, mount, starts } = await mounted(first, answering("two"));
  first.die("it exited with code 0");
  const outcomes = await clock.run(
    Promise.all(Array.from({ length: 20 }, () => call(mount))),
  );
  assert.ok(outcomes.every((outcome) => outcome.kind === "answer"));
  assert.equal(starts.length, 2);
});

Deno.test("a server that can't be started again makes the call not sent, with the reason", async () => {
  const first = answering("one");
  const { clock, mount } = await mounted(first, undefined);
  first.die("it exited with code 0");
  const error = notSent(await clock.run(call(mount)));
  assert.equal(error.code, "DEVICE_DISCONNECTED");
  assert.match(error.message, /"s" is down, it could not be started again: it does not start/);
});

Deno.test("[B09] a server in constant use is started again without end, never in less than 25 s once the pauses are longer", async () => {
  const first = answering("one");
  const { clock, mount, starts } = await mounted(
    first,
    ...new Array(12).fill(undefined),
    answering("up"),
  );
  first.die("it exited with code 0");
  let outcome = await clock.run(call(mount));
  for (let round = 0; round < 1_000 && outcome.kind !== "answer"; round += 1) {
    await clock.advance(500);
    outcome = await clock.run(call(mount));
  }
  assert.equal(outcome.kind, "answer");
  const gaps = starts.slice(2).map((at, index) =>
    Math.round((at - (starts[index + 1] ?? 0)) / 1000)
  );
  assert.deepEqual(gaps, [1, 2, 4, 8, 16, 25, 25, 25, 25, 25, 25, 25]);
});

Deno.test("[B09] a healthy minute starts the row anew, a handshake alone doesn't", async () => {
  const { clock, mount, starts } = await mounted(dyingServer, dyingServer);
  for (let round = 0; round < 4; round += 1) await clock.run(call(mount));
  const quick = starts.slice(1).map((at, index) => at - (starts[index] ?? 0));
  assert.ok((quick[1] ?? 0) >= 1_000 && (quick[2] ?? 0) >= 2_000, String(quick));
  await clock.advance(10_000);
  await clock.run(mount.open("tools/t").write({}, options));
  // The server that is started next stays up for more than a minute.
  const steady = answering("ok");
  const other = await mounted(dyingServer, steady, answering("again"));
  await other.clock.run(call(other.mount));
  await other.clock.run(call(other.mount));
  await other.clock.advance(61_000);
  steady.die("it exited with code 0");
  const before = other.clock.monotonic();
  assert.equal((await other.clock.run(call(other.mount))).kind, "answer");
  assert.ok((other.starts[2] ?? 0) - before < 1_000);
});

Deno.test("a use while the server asked to be left alone is told when the next attempt is", async () => {
  const first = answering("one");
  const { clock, mount, starts } = await mounted(first, answering("two"));
  first.retryAfterMs = 90_000;
  first.die("it refused the stream: 503");
  await clock.advance(10_000);
  const error = notSent(await clock.run(call(mount)));
  assert.match(error.message, /asked to be left alone, next attempt in 1m20s: it refused/);
  await clock.advance(70_000);
  assert.equal((await clock.run(call(mount))).kind, "answer", "a short wait is waited for");
  assert.deepEqual(starts.map((at) => at / 1000), [0, 90]);
});

Deno.test("[D13] tools are listed again after a restart; a change is told, sameness isn't", async () => {
  const [first, second] = [answering("1"), answering("2")];
  const { clock, mount } = await mounted(first, second, answering("3", [tool("new")]));
  const told: MountFacts[] = [];
  mount.onChange = (facts) => told.push(facts);
  first.die("it exited with code 0");
  await clock.run(call(mount));
  assert.equal(told.length, 0);
  const open = mount.open("tools/t");
  second.die("it exited with code 0");
  await clock.run(open.write({}, options));
  assert.deepEqual(told.map((facts) => facts.tools.map((each) => each.name)), [["new"]]);
  assert.equal(notSent(await open.write({}, options)).code, "NOT_FOUND");
  assert.equal((await clock.run(call(mount, "new"))).kind, "answer");
});

Deno.test("news of changed tools lead to one listing, however many they are", async () => {
  let tools = [tool("t")];
  const server = new MemoryServer({ "tools/list": () => ({ result: { tools } }) });
  const { mount } = await mounted(server);
  const changed = Promise.withResolvers<MountFacts>();
  mount.onChange = changed.resolve;
  tools = [tool("t"), tool("u")];
  for (let news = 0; news < 50; news += 1) {
    server.deliver({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  }
  assert.deepEqual((await changed.promise).tools.map((each) => each.name), ["t", "u"]);
  for (let turn = 0; turn < 20; turn += 1) await settle();
  assert.ok(server.methods.filter((method) => method === "tools/list").length <= 3);
});

Deno.test("news of changed tools that its end overtakes are no news", async () => {
  for (const end of ["close", "death"]) {
    const told: string[] = [];
    const listing = Promise.withResolvers<void>();
    let listings = 0;
    const server = new MemoryServer({
      "tools/list": async () => {
        listings += 1;
        if (listings > 1) await listing.promise;
        return { result: { tools: [tool("t")] } };
      },
    });
    const made = driverOf([server], { onWarning: (_, message) => told.push(message) });
    const mount = await made.clock.run(made.mount());
    server.deliver({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    for (let turn = 0; turn < 20; turn += 1) await settle();
    assert.equal(listings, 2, end);
    if (end === "close") await mount.close();
    else server.die("it exited with code 1");
    for (let turn = 0; turn < 20; turn += 1) await settle();
    assert.deepEqual(told.filter((message) => message.includes("listed")), [], end);
    listing.resolve();
  }
});

Deno.test("a server that writes nothing has a log all the same, also one that doesn't start", async () => {
  for (const server of [answering("x"), undefined]) {
    const storage = new FaultyDisk();
    const { clock, mount } = driverOf([server], { storage });
    await clock.run(mount().then((made) => made.close(), () => {}));
    assert.deepEqual(await storage.list("/run/mounts"), ["s.stderr.log"]);
    assert.equal((await storage.read("/run/mounts/s.stderr.log")).length, 0);
  }
});

Deno.test("what never reached a dead server is sent to the new one; what may have is not", async () => {
  const proven = answering("old");
  const again = await mounted(proven, answering("new"));
  proven.send = () => {
    proven.die("it exited with code 0");
    return Promise.reject(new SendError("closed its stdin", true));
  };
  const outcome = await again.clock.run(call(again.mount));
  assert.ok(outcome.kind === "answer" && JSON.stringify(outcome.content).includes("new"));

  const doubtful = answering("old");
  const once = await mounted(doubtful, answering("new"));
  doubtful.sendFailure = new SendError("closed its stdin", false);
  assert.equal((await once.clock.run(call(once.mount))).kind, "unknown");
  assert.equal(once.starts.length, 1);
});

Deno.test("a late answer comes as an outcome", async () => {
  const slow = new MemoryServer({
    "tools/call": () =>
      new Promise((resolve) => peer.clock.after(15_000, () => resolve(text("late")))),
  });
  const peer = await mounted(slow);
  const outcome = await peer.clock.run(call(peer.mount));
  assert.ok(outcome.kind === "unknown" && outcome.cause === "timeout");
  assert.deepEqual(await peer.clock.run(outcome.late), {
    kind: "answer",
    isError: false,
    content: [{ type: "text", text: "late" }],
  });
});

Deno.test("[A07] closing during a restart ends it; nothing starts afterwards", async () => {
  const first = answering("one");
  const stuck = new MemoryServer({ initialize: () => undefined });
  const { clock, mount, starts } = await mounted(first, stuck, answering("never"));
  first.die("it exited with code 0");
  const pending = call(mount);
  for (let turn = 0; turn < 5; turn += 1) await settle();
  await clock.run(mount.close());
  assert.equal(notSent(await clock.run(pending)).code, "DEVICE_DISCONNECTED");
  assert.equal(stuck.ended, "rnix closed it");
  assert.match(notSent(await clock.run(call(mount))).message, /is unmounted/);
  await clock.run(mount.close());
  assert.equal(starts.length, 2);
  assert.equal(clock.pending, 0);
});

Deno.test("a call in flight when the mount is closed is unknown", async () => {
  const { clock, mount } = await mounted(new MemoryServer({ "tools/call": () => undefined }));
  const pending = call(mount);
  await settle();
  await mount.close();
  const outcome = await clock.run(pending);
  assert.ok(outcome.kind === "unknown" && outcome.cause === "disconnected");
});
