/** A connected MCP server in the hands of a test: what it says of itself, what it answers, when it goes. */
import type {
  ServerAnswer,
  ServerAsk,
  ServerEnd,
  ServerFacts,
  ServerObserver,
  ServerSession,
} from "../../src/base/server_operations.ts";

export const SERVER_FACTS: ServerFacts = {
  server: "files",
  transport: "stdio",
  era: "legacy",
  protocol_version: "2025-11-25",
  server_info: { name: "files", version: "1.2.0" },
  capabilities: { tools: {}, resources: {} },
  tools: 2,
  connect_ms: 120,
};

type Answers = {
  [method: string]: (ask: ServerAsk, signal?: AbortSignal) => ServerAnswer | Promise<ServerAnswer>;
};

export class FakeServer implements ServerSession {
  facts = SERVER_FACTS;
  readonly asked: ServerAsk[] = [];
  closed = 0;
  observer: ServerObserver | undefined;
  readonly #gone = Promise.withResolvers<ServerEnd>();
  readonly #answers: Answers;

  /** By method; one that isn't there is answered with an empty result. */
  constructor(answers: Answers = {}) {
    this.#answers = answers;
  }

  get ended(): Promise<ServerEnd> {
    return this.#gone.promise;
  }

  /** For `FakeSystem.server`. */
  readonly connect = (observer: ServerObserver): ServerSession => {
    this.observer = observer;
    return this;
  };

  async ask(ask: ServerAsk, signal?: AbortSignal): Promise<ServerAnswer> {
    this.asked.push(ask);
    const answer = this.#answers[ask.method];
    return answer === undefined ? { outcome: "ok", result: {} } : await answer(ask, signal);
  }

  /** The server goes. */
  die(message: string): void {
    this.#gone.resolve({ error: { code: "DEVICE_DISCONNECTED", message }, exit_code: 1 });
  }

  close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }
}
