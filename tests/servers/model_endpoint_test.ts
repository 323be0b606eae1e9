import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { startModelEndpoint } from "./model_endpoint.ts";
import { TextLineStream } from "../doubles/text_lines.ts";

const ask = (url: string, body: unknown) =>
  fetch(`${url}/chat/completions`, { method: "POST", body: JSON.stringify(body) });

const request = { model: "m", stream: true, messages: [{ role: "user", content: "go" }] };

Deno.test("an unsound request gets HTTP 400 and is recorded, bytes and all", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "hi" }));
  const response = await ask(endpoint.url, { ...request, messages: [] });
  assert.equal(response.status, 400);
  await response.body?.cancel();
  const good = await ask(endpoint.url, request);
  assert.match(await good.text(), /"content":"hi"[\s\S]*data: \[DONE\]/);
  await endpoint.close();
  assert.deepEqual(endpoint.violations, ["messages isn't a filled list"]);
  assert.equal(new TextDecoder().decode(endpoint.requests[1]?.bytes), JSON.stringify(request));
});

Deno.test("as a process it prints its address and answers so many calls, then text", async () => {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--allow-net=127.0.0.1",
      "--no-prompt",
      fileURLToPath(import.meta.resolve("./model_endpoint.ts")),
      "--calls",
      "1",
      "--tool",
      "echo",
      "--input",
      '{"a":1}',
    ],
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextLineStream()).getReader();
  const { value: line = "" } = await reader.read();
  const { url }: { url: string } = JSON.parse(line);
  const tools = [{
    type: "function",
    function: { name: "mcp__x__echo", parameters: { type: "object", properties: {} } },
  }];
  const first = await (await ask(url, { ...request, tools })).text();
  assert.match(first, /"name":"mcp__x__echo"/);
  const history = [...request.messages, { role: "assistant", content: "x" }];
  assert.match(
    await (await ask(url, { ...request, messages: history, tools })).text(),
    /All calls are made/,
  );
  child.kill("SIGKILL");
  await reader.cancel();
  await child.status;
});
