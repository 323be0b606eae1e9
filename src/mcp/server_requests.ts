/**
 * What rnix answers when a server asks: by request (up to 2025-11-25) or by an `input_required` result (2026-07-28). Both eras get the same answers.
 *
 * 1. Every request is answered at once, whoever sits at the terminal: ping with nothing, roots with none, elicitation by policy, sampling with an error, anything else with "method not found".
 * 2. Only what can be answered is announced: elicitation where the policy may accept, nothing else.
 * 3. An input that can't be answered (sampling, an unknown kind) ends the call; no part of it is sent.
 */
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { ElicitPolicy } from "../base/server_operations.ts";

/** How often one call is sent again because the server wanted input. */
export const INPUT_ROUNDS_MAX = 10;
/** Pause before a call goes again whose server only said "not yet", milliseconds. */
export const INPUT_PAUSE_MS = 250;

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
/** The code that the protocol shows for a request its user refused. */
const REFUSED = -1;

/** What a server gets for its request. */
export type RequestAnswer =
  | { result: JsonObject }
  | { error: { code: number; message: string } };

/** Told of every request but `ping`, with what was answered. Must not throw. */
export type AskedObserver = (
  asked: { method: string; params: Json | undefined; answer: RequestAnswer },
) => void;

export class ServerRequests {
  readonly #policy: ElicitPolicy;
  readonly #onAsked: AskedObserver;

  /** Without a policy every question is declined. */
  constructor(policy: ElicitPolicy = { kind: "decline" }, onAsked: AskedObserver = () => {}) {
    this.#policy = policy;
    this.#onAsked = onAsked;
  }

  /** What a server is told that this client can do. */
  get capabilities(): { elicitation?: { form: Record<string, never> } } {
    return this.#policy.kind === "decline" ? {} : { elicitation: { form: {} } };
  }

  /** The answer to a request. Never throws. */
  answer(method: string, params: Json | undefined): RequestAnswer {
    if (method === "ping") return { result: {} };
    const answer = this.#answer(method, params);
    this.#onAsked({ method, params, answer });
    return answer;
  }

  /** What a call that came back with `input_required` is sent again with; undefined where it can't be answered. */
  inputs(result: JsonObject): JsonObject | undefined {
    const { inputRequests, requestState } = result;
    const state = requestState === undefined ? {} : { requestState };
    if (inputRequests === undefined) return requestState === undefined ? undefined : state;
    if (!isJsonObject(inputRequests)) return undefined;
    const asked = Object.entries(inputRequests);
    if (asked.length === 0) return requestState === undefined ? undefined : state;
    if (unanswerable(result).length > 0) return undefined;
    const responses: JsonObject = {};
    for (const [key, input] of asked) {
      const { method, params } = isJsonObject(input) ? input : {};
      const answer = this.answer(String(method), params);
      if (!("result" in answer)) return undefined;
      responses[key] = answer.result;
    }
    return { inputResponses: responses, ...state };
  }

  #answer(method: string, params: Json | undefined): RequestAnswer {
    switch (method) {
      case "roots/list":
        return { result: { roots: [] } };
      case "elicitation/create":
        return this.#elicit(params);
      case "sampling/createMessage":
        return refusal(REFUSED, "rnix asks no model on behalf of a server");
      case "initialize":
      case "server/discover":
        // Its own echo: this refusal comes back as the answer and becomes what is said of the program.
        return refusal(
          METHOD_NOT_FOUND,
          `"${method}" is for clients to send; a program that gives back its input is no MCP server`,
        );
      default:
        return refusal(METHOD_NOT_FOUND, `Method "${method}" is not known to rnix`);
    }
  }

  /** Only a form can be filled in without a person: an address is never opened. */
  #elicit(params: Json | undefined): RequestAnswer {
    if (!isJsonObject(params)) {
      return refusal(INVALID_PARAMS, "The parameters of elicitation/create must be an object");
    }
    const isForm = params["mode"] === undefined || params["mode"] === "form";
    const content = isForm ? this.#content(params["requestedSchema"]) : undefined;
    return content === undefined
      ? { result: { action: "decline" } }
      : { result: { action: "accept", content } };
  }

  #content(schema: Json | undefined): JsonObject | undefined {
    if (this.#policy.kind === "decline") return undefined;
    return this.#policy.kind === "content" ? this.#policy.content : defaultsOf(schema);
  }
}

/** The rounds of one call. */
export class InputRounds {
  readonly #requests: ServerRequests | undefined;
  #rounds = 0;

  /** Without `requests` (a server of the older era) every result is the last. */
  constructor(requests: ServerRequests | undefined) {
    this.#requests = requests;
  }

  /** Whether the server has answered before. */
  get begun(): boolean {
    return this.#rounds > 0;
  }

  /** What the call goes on with, besides its own parameters; undefined where the result is the last. */
  next(result: Json): { params: JsonObject; pauseMs: number } | undefined {
    if (!isJsonObject(result) || result["resultType"] !== "input_required") return undefined;
    if (this.#rounds >= INPUT_ROUNDS_MAX) return undefined;
    const params = this.#requests?.inputs(result);
    if (params === undefined) return undefined;
    this.#rounds += 1;
    return { params, pauseMs: params["inputResponses"] === undefined ? INPUT_PAUSE_MS : 0 };
  }
}

/** Kinds of input that an `input_required` result asks for and nobody here can give. */
export function unanswerable(result: JsonObject): string[] {
  const { inputRequests } = result;
  if (!isJsonObject(inputRequests)) return [];
  const methods = Object.values(inputRequests).map((input) =>
    isJsonObject(input) && typeof input["method"] === "string" ? input["method"] : "unknown"
  );
  return [...new Set(methods)].filter((method) => !ANSWERABLE.has(method));
}

const ANSWERABLE: ReadonlySet<string> = new Set(["roots/list", "elicitation/create"]);

/** The defaults of a form; undefined where a field that must be filled in has none. */
function defaultsOf(schema: Json | undefined): JsonObject | undefined {
  const { properties, required } = isJsonObject(schema) ? schema : {};
  const content: JsonObject = {};
  for (const [name, field] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const value = isJsonObject(field) ? field["default"] : undefined;
    if (value !== undefined) content[name] = value;
  }
  const needed = Array.isArray(required) ? required : [];
  const isWhole = needed.every((name) => typeof name !== "string" || Object.hasOwn(content, name));
  return isWhole ? content : undefined;
}

function refusal(code: number, message: string): RequestAnswer {
  return { error: { code, message } };
}
