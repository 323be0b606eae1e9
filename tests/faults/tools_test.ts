/** Tools with schemas, names and listings of every kind: one bad tool never takes the others with it. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { isJsonObject, type Json } from "../../src/base/json.ts";
import type { MountFacts } from "../../src/kernel/mount.ts";
import { projectForAnthropic } from "../../src/llm/anthropic/provider.ts";
import { projectForGemini } from "../../src/llm/google/gemini_schema.ts";
import { projectSchema } from "../../src/llm/schema_projection.ts";
import { checkParameters } from "../servers/chat_request_check.ts";
import { scripted } from "../servers/launch_server.ts";
import { answerOf, withBench } from "../servers/mount_bench.ts";
import { DOUBTFUL, ODD_TOOLS, UNUSABLE, USABLE } from "../servers/odd_tools.ts";
import { ONE_TOOL, scene, until } from "./fault_scene.ts";

const names = (facts: MountFacts) => facts.tools.map(({ name }) => name);
const plain = (name: string) => ({ name, inputSchema: { type: "object" } });

scene(
  "[B27] [B33] [B35] every usable tool is there and can be called, every other is set aside with a reason",
  { tools: ODD_TOOLS },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const usable = [...Object.keys(USABLE), ...Object.keys(DOUBTFUL)].sort();
      assert.deepEqual(names(mount.facts), usable);
      for (const tool of [...Object.keys(UNUSABLE), "without_schema"]) {
        assert.match(mount.facts.setAside[tool] ?? "", /inputSchema|nested/, tool);
      }
      for (const [tool, { args }] of Object.entries(USABLE)) {
        assert.equal(answerOf(await bench.call(mount, tool, args)), `called ${tool}`);
      }
      assert.equal(answerOf(await bench.call(mount, "remote_ref", { a: 1 })), "called remote_ref");
    });
  },
);

scene(
  "[B29] [B31] [B33] what a mounted tool becomes for a provider has nothing that one refuses",
  { tools: ODD_TOOLS },
  async ({ mounted }) => {
    await mounted((mount) => {
      const refused = new Set<string>();
      for (const { name, inputSchema } of mount.facts.tools) {
        for (const project of [projectSchema, projectForAnthropic]) {
          const projection = project(inputSchema);
          if ("refused" in projection) refused.add(name);
          else assert.deepEqual(checkParameters(projection.schema), [], name);
        }
        const gemini = projectForGemini(inputSchema);
        if ("refused" in gemini) refused.add(name);
        else {
          assert.equal(gemini.schema["type"], "object", name);
          const keys = keysOf(gemini.schema);
          for (
            const key of ["additionalProperties", "$ref", "$schema", "oneOf", "allOf", "const"]
          ) {
            assert.ok(!keys.has(key), `${name}: ${key}`);
          }
        }
      }
      assert.deepEqual([...refused].sort(), Object.keys(DOUBTFUL).sort());
      return Promise.resolve();
    });
  },
  ["stdio"],
);

/** The names of all members, properties named by the schema included. */
function keysOf(value: Json): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((item) => [...keysOf(item)]));
  if (!isJsonObject(value)) return new Set();
  return new Set(
    Object.entries(value).flatMap(([key, member]) => [key, ...keysOf(member)]),
  );
}

for (const [first, second] of [["legacy", "modern"], ["modern", "legacy"]] as const) {
  scene(
    `[D13] a ${first} server that comes back as a ${second} one is spoken to in its new era`,
    ({ starts }) => ({
      starts,
      lives: [
        { era: first, on: { "tools/call": { exitAfter: 0, text: "last words" } } },
        { era: second, tools: [plain("new")] },
      ],
    }),
    async ({ mounted, bench }) => {
      await mounted(async (mount) => {
        assert.equal(answerOf(await bench.call(mount)), "last words");
        await until(() => names(mount.facts).includes("new"));
        assert.equal(mount.facts.era, second);
        assert.equal(answerOf(await bench.call(mount, "new")), "called new");
      });
    },
    ["stdio"],
  );
}

const LONG = "tool_with_a_name_that_is_far_longer_than_providers_take_" + "x".repeat(60);
const COLLIDING = ["a.b", "a_b", "a b", "a/b", "ä", "ö", LONG, `${LONG}y`];

Deno.test("[B37] [B39] names of two servers that are long, equal or equal after sanitising stay apart and lead to their own tool", async () => {
  await withBench(async (bench) => {
    const servers = ["mail", "a-server-whose-name-alone-takes-forty-chars"];
    const mounts = await Promise.all(
      servers.map((server) => bench.mount(scripted({ tools: COLLIDING.map(plain) }, { server }))),
    );
    const modelNames = mounts.flatMap(({ facts }) => facts.tools.map(({ modelName }) => modelName));
    assert.equal(new Set(modelNames).size, 2 * COLLIDING.length);
    for (const name of modelNames) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
    for (const mount of mounts) {
      for (const { name, modelName } of mount.facts.tools) {
        assert.equal(answerOf(await bench.call(mount, modelName)), `called ${name}`);
      }
      await mount.close();
    }
  });
});

scene(
  "[B51] an empty cursor for ever ends after the page that brings nothing new",
  { pages: [{ tools: [plain("a")], nextCursor: "" }] },
  async ({ mounted, methods }) => {
    await mounted((mount) => Promise.resolve(assert.deepEqual(names(mount.facts), ["a"])));
    assert.equal(methods().filter((method) => method === "tools/list").length, 2);
  },
);

scene(
  "[B51] always new cursors without new tools end as soon",
  { tools: [plain("a"), plain("b")], endlessPages: "same-tools" },
  async ({ mounted, methods }) => {
    await mounted((mount) => Promise.resolve(assert.deepEqual(names(mount.facts), ["a", "b"])));
    assert.equal(methods().filter((method) => method === "tools/list").length, 2);
  },
);

scene(
  "[B51] tools without end fail the mount at a cap that names the server",
  { endlessPages: "new-tools" },
  async ({ bench, launch, methods }) => {
    const error = await bench.mount(launch()).then(() => undefined, (thrown) => thrown);
    assert.ok(error instanceof SysError && error.code === "RESOURCE_EXHAUSTED", String(error));
    assert.match(error.message, /Server "s" lists tools without end/);
    assert.ok(methods().filter((method) => method === "tools/list").length <= 200);
  },
);

scene(
  "[B53] the same cursor with other pages is followed to the last page",
  {
    pages: [
      { tools: [plain("a")], nextCursor: "next" },
      { tools: [plain("b")], nextCursor: "next" },
      { tools: [plain("c")], nextCursor: "next" },
      { tools: [plain("d")] },
    ],
  },
  async ({ mounted }) => {
    await mounted((mount) =>
      Promise.resolve(assert.deepEqual(names(mount.facts), ["a", "b", "c", "d"]))
    );
  },
);

scene(
  "a server that says its tools changed is asked again, a withdrawn tool is told to be gone",
  {
    capabilities: { tools: { listChanged: true } },
    on: {
      "tools/call": {
        text: "changed",
        tools: [plain("new")],
        notify: "notifications/tools/list_changed",
        then: { text: "still" },
      },
    },
  },
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const changes: string[][] = [];
      mount.onChange = (facts) => changes.push(names(facts));
      const file = mount.open("tools/t");
      assert.equal(answerOf(await bench.call(mount)), "changed");
      await until(() => changes.length > 0);
      assert.deepEqual(changes, [["new"]]);
      const gone = await file.write({}, {
        signal: new AbortController().signal,
        cancelGraceMs: 100,
        callId: "t9.9",
        idempotencyKey: "k",
      });
      assert.ok(gone.kind === "not-sent" && gone.error.code === "NOT_FOUND");
      assert.equal(answerOf(await bench.call(mount, "new")), "still");
    });
  },
);

scene(
  "a server of 2026-07-28 tells who subscribed that its tools changed",
  {
    era: "modern",
    subscriptions: true,
    capabilities: { tools: { listChanged: true } },
    on: {
      "tools/call": {
        text: "changed",
        tools: [plain("new")],
        notify: "notifications/tools/list_changed",
      },
    },
  },
  async ({ mounted, bench, methods }) => {
    await mounted(async (mount) => {
      await until(() => methods().includes("subscriptions/listen"));
      const changed = new Promise<string[]>((resolve) =>
        mount.onChange = (facts) => resolve(names(facts))
      );
      assert.equal(answerOf(await bench.call(mount)), "changed");
      assert.deepEqual(await changed, ["new"]);
    });
  },
);

scene(
  "[D13] a server that comes back with other tools is listed anew",
  ({ starts }) => ({
    starts,
    lives: [{ tools: ONE_TOOL, on: { "tools/call": { exitAfter: 0, text: "last words" } } }, {
      tools: [plain("new")],
    }],
  }),
  async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      assert.equal(answerOf(await bench.call(mount)), "last words");
      const isNew = () => names(mount.facts).includes("new");
      await until(() => mount.health.state !== "connected" || isNew());
      // Either the call joins the new start, or that is through already and there is no such tool.
      if (!isNew()) {
        const { kind } = await bench.call(mount);
        assert.ok(kind === "not-sent" || kind === "answer", kind);
      }
      assert.deepEqual(names(mount.facts), ["new"]);
      assert.equal(answerOf(await bench.call(mount, "new")), "called new");
    });
  },
  ["stdio"],
);
