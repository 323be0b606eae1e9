/** One request on its way to a provider's library: whole, or with what is already serialised left out. */
import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { ModelRequest } from "../model.ts";
import type { Translator } from "./translate.ts";

/** What goes to the library, and what becomes of the body that the library makes. */
export interface OutgoingBody {
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: LanguageModelV4FunctionTool[];
  /** Size of the finished body. */
  readonly bytes: number;
  take(body: Record<string, unknown>): Record<string, unknown>;
  /** The body as it is sent. */
  finish(serialised: string): string | Uint8Array<ArrayBuffer>;
}

/** Begins requests. */
export interface Bodies {
  begin(request: ModelRequest): OutgoingBody;
}

/** Bodies that the library makes as a whole each time. Messages and tools are translated once. */
export class WholeBodies implements Bodies {
  readonly #translator: Translator;
  readonly #prepare: (prompt: LanguageModelV4Prompt) => LanguageModelV4Prompt;

  constructor(
    translator: Translator,
    prepare: (prompt: LanguageModelV4Prompt) => LanguageModelV4Prompt = (prompt) => prompt,
  ) {
    this.#translator = translator;
    this.#prepare = prepare;
  }

  begin({ system, messages, tools }: ModelRequest): OutgoingBody {
    const prompt = this.#prepare(this.#translator.prompt(system, messages));
    return new WholeBody(prompt, this.#translator.tools(tools));
  }
}

class WholeBody implements OutgoingBody {
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: LanguageModelV4FunctionTool[];
  bytes = 0;

  constructor(prompt: LanguageModelV4Prompt, tools: LanguageModelV4FunctionTool[]) {
    this.prompt = prompt;
    this.tools = tools;
  }

  take(body: Record<string, unknown>): Record<string, unknown> {
    return body;
  }

  finish(serialised: string): string {
    this.bytes = serialised.length;
    return serialised;
  }
}
