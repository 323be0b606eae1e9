/** A model as the kernel's device `/dev/llm/<provider>`: gives it the prompt of an agent and the process's tools. */
import type { Price } from "../../base/budget.ts";
import type { Json } from "../../base/json.ts";
import type { ModelPort } from "../../kernel/ports.ts";
import type { PromptHead } from "../../kernel/program.ts";
import type { Message, Model, ModelTool } from "../../llm/model.ts";
import type { ToolDefinition } from "../../vfs/device.ts";

/** What a prompt must hold to be sent to a model. */
export interface ConversationPrompt extends PromptHead {
  system: string;
  messages: readonly Message[];
  purpose?: "summary";
}

/** Binds a provider's model to one model name. */
export function modelPort<P extends ConversationPrompt>(
  model: Model,
  name: string,
  { requestMsMax, price }: { requestMsMax: number; price?: Price | undefined },
): ModelPort<P> {
  let last: { of: readonly ToolDefinition[]; tools: ModelTool[] } | undefined;
  return {
    provider: model.provider,
    model: name,
    requestMsMax,
    ...(price === undefined ? {} : { price }),
    ...(model.toolsMax === undefined ? {} : { toolsMax: model.toolsMax }),
    refuses: (tool) => model.refuses(tool.inputSchema),
    async request(prompt, definitions, options) {
      // The same array while nothing changed, so that a provider can keep what it made of it.
      if (last?.of !== definitions) last = { of: definitions, tools: definitions.map(modelTool) };
      const { system, messages, purpose } = prompt;
      const outcome = await model.request(
        {
          model: name,
          system,
          messages,
          tools: last.tools,
          ...(purpose === undefined ? {} : { purpose }),
        },
        options,
      );
      if (!outcome.ok) return outcome;
      const { message, usage, finishReason } = outcome.reply;
      return { ok: true, message: message as unknown as Json, usage, finishReason };
    },
  };
}

function modelTool(definition: ToolDefinition): ModelTool {
  return {
    name: definition.modelName,
    description: definition.description ?? definition.title ?? "",
    inputSchema: definition.inputSchema,
  };
}
