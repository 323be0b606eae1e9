/** OpenAI's chat completions, as a model endpoint speaks them. */
import { isJsonObject, type JsonObject } from "../../src/base/json.ts";
import { checkChatRequest } from "./chat_request_check.ts";
import {
  asList,
  callId,
  type EndpointReply,
  fullName,
  halves,
  pieces,
  thoughts,
  type WireShape,
} from "./wire_shape.ts";

function chunks(body: JsonObject, reply: EndpointReply, number: number): string[] {
  const event = (content: JsonObject) =>
    `data: ${
      JSON.stringify({
        id: `chatcmpl-${number}`,
        object: "chat.completion.chunk",
        created: 0,
        model: body.model ?? "",
        ...content,
      })
    }\n\n`;
  const delta = (content: JsonObject, finish: string | null = null) =>
    event({ choices: [{ index: 0, delta: content, finish_reason: finish }] });
  const texts = pieces(reply);
  const calls = reply.calls ?? [];
  const sent = [delta({ role: "assistant", content: "" })];
  for (const { text } of thoughts(reply)) sent.push(delta({ reasoning_content: text }));
  sent.push(...texts.map((text) => delta({ content: text })));
  for (const [index, call] of calls.entries()) {
    const id = callId(call, number, index);
    const name = fullName(toolNames(body), call.name);
    sent.push(
      delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
    );
    const texts = call.arguments === null ? [null] : halves(call.arguments);
    sent.push(
      ...texts.map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    );
  }
  if (reply.streamError !== undefined) {
    return [...sent, `data: ${JSON.stringify({ error: reply.streamError })}\n\n`];
  }
  const finish = reply.finish === undefined
    ? (calls.length > 0 ? "tool_calls" : "stop")
    : reply.finish;
  if (finish !== null) sent.push(delta({}, finish));
  if (reply.usage !== null) {
    sent.push(
      event({
        choices: [],
        usage: reply.usage ?? { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
      }),
    );
  }
  return sent;
}

function toolNames(body: JsonObject): string[] {
  return asList(body.tools).map((tool) =>
    isJsonObject(tool) && isJsonObject(tool.function) ? String(tool.function.name) : ""
  );
}

export const chatShape: WireShape = {
  basePath: "/v1",
  accepts: (pathname) => pathname === "/v1/chat/completions",
  check: checkChatRequest,
  toolNames,
  chunks,
  end: "data: [DONE]\n\n",
  error: (_status, error) => ({ error }),
};
