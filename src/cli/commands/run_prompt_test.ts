import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../base/json.ts";
import type { ServerAnswer, ServerSession } from "../../base/server_operations.ts";
import { FakeSystem } from "../../../tests/doubles/fake_system.ts";
import { FakeWorld } from "../../../tests/doubles/fake_world.ts";
import { promptText } from "./run_prompt.ts";

const PROMPTS = [
  { name: "plain" },
  {
    name: "weather",
    arguments: [{ name: "city", required: true }, { name: "state", required: false }],
  },
];

const said = (role: string, text: string) => ({ role, content: { type: "text", text } });

/** A world whose server has prompts, and what it was asked. */
function worldWith(
  messages: Json[],
  { capabilities = { prompts: {} }, answer }: {
    capabilities?: JsonObject;
    answer?: ServerAnswer;
  } = {},
) {
  const asked: { method: string; params: JsonObject }[] = [];
  let closed = 0;
  const session = {
    facts: { capabilities },
    ask: ({ method, params }: { method: string; params: JsonObject }): Promise<ServerAnswer> => {
      asked.push({ method, params });
      if (method === "prompts/list") {
        return Promise.resolve({ outcome: "ok", result: { prompts: PROMPTS } });
      }
      return Promise.resolve(answer ?? { outcome: "ok", result: { messages } });
    },
    close: () => Promise.resolve(void (closed += 1)),
  } as unknown as ServerSession;
  const system = Object.assign(new FakeSystem(), { server: () => session });
  return { world: new FakeWorld({ system }), system, asked, closed: () => closed };
}

Deno.test("[F13] a prompt of the agent's server is the run's intent, with the words after it", async () => {
  const messages = [said("user", "What's the weather in Bern?")];
  const { world, system, asked, closed } = worldWith(messages);
  const args = ["--prompt", "sky/weather", "--prompt-arg", "city=Bern"];
  assert.equal(await world.run("run", "./a", ...args, "Be", "brief."), 0);
  assert.deepEqual(system.runs.map(({ intent }) => intent), [
    "What's the weather in Bern?\n\nBe brief.",
  ]);
  assert.deepEqual(system.opened.map(({ server }) => server), [
    { kind: "agent", manifest: "./a", server: "sky" },
  ]);
  assert.deepEqual(asked.at(-1), {
    method: "prompts/get",
    params: { name: "weather", arguments: { city: "Bern" } },
  });
  assert.equal(closed(), 1, "the server that was asked is ended before the run has its own");
});

Deno.test("a wrong name lists what there is, wrong arguments what it takes; nothing is run", async () => {
  const cases: [string[], RegExp][] = [
    [["--prompt", "sky/wether"], /\[NOT_FOUND\].*\n.*did you mean weather\?.*plain, weather/],
    [["--prompt", "sky/weather"], /needs city.*\n.*its arguments: city, state/],
    [["--prompt", "sky/plain", "--prompt-arg", "x=1"], /doesn't take x.*\n.*takes no arguments/],
    [["--prompt", "sky"], /write --prompt SERVER\/NAME/],
    [["--prompt", "sky/"], /write --prompt SERVER\/NAME/],
    [["--prompt-arg", "x=1"], /"--prompt-arg" needs "--prompt"/],
    [["--prompt", "sky/plain", "--prompt-arg", "x"], /write --prompt-arg NAME=VALUE/],
  ];
  for (const [args, wanted] of cases) {
    const { world, system } = worldWith([said("user", "x")]);
    assert.equal(await world.run("run", "./a", ...args), 2, args.join(" "));
    assert.match(world.err.text, wanted);
    assert.deepEqual(system.runs, []);
  }
  const none = worldWith([], { capabilities: {} });
  assert.equal(await none.world.run("run", "./a", "--prompt", "sky/plain"), 2);
  assert.match(none.world.err.text, /Server "sky" has no prompts/);
});

Deno.test("what the server refuses, and a prompt without text, start no run", async () => {
  const error = { code: "DRIVER", message: "MCP error -32603: broken" };
  const refused = worldWith([], { answer: { outcome: "error", error } });
  assert.equal(await refused.world.run("run", "./a", "--prompt", "sky/plain"), 1);
  assert.match(refused.world.err.text, /\[DRIVER\] MCP error -32603: broken/);
  const image = { role: "user", content: { type: "image", data: "AAAA", mimeType: "image/png" } };
  const empty = worldWith([image]);
  assert.equal(await empty.world.run("run", "./a", "--prompt", "sky/plain"), 2);
  assert.match(empty.world.err.text, /Prompt "plain" has no text/);
  assert.deepEqual([...refused.system.runs, ...empty.system.runs], []);
  assert.deepEqual([refused.closed(), empty.closed()], [1, 1]);
});

Deno.test("whose words they are is said where they aren't all the user's; what isn't text is told", () => {
  const resource = { uri: "note://a", text: "held" };
  const messages = [
    said("user", "Look."),
    { role: "user", content: { type: "resource", resource } },
    { role: "user", content: { type: "audio", data: "AAAA", mimeType: "audio/wav" } },
  ];
  assert.deepEqual(promptText({ messages }), {
    text: "Look.\n\n[resource note://a]\nheld",
    leftOut: ["audio"],
  });
  assert.deepEqual(promptText({ messages: [said("user", "Q"), said("assistant", "A")] }), {
    text: "[user]\nQ\n\n[assistant]\nA",
    leftOut: [],
  });
  for (const odd of [null, [], { messages: "x" }, { messages: [1, null] }]) {
    assert.deepEqual(promptText(odd), { text: "", leftOut: [] });
  }
});
