/**
 * Judges servers for clients: each is named, started, looked at and ended, all at once; verdicts go out as they come.
 *
 * 1. What is wrong with one server, its name or its trust included, is its verdict and hinders no other.
 * 2. Consent is asked for one server after the other, before anything is started, and once for what was refused.
 * 3. When the client goes or the daemon stops, all that was started is ended.
 */
import type { SysError } from "../base/errors.ts";
import { redactError } from "../base/redacted_error.ts";
import { createRedaction } from "../base/redaction.ts";
import type { ServerReference } from "../base/server_operations.ts";
import type { JudgeRequest, ServerVerdict } from "../base/server_verdict.ts";
import { VERSION } from "../base/version.ts";
import type { JudgeLine } from "../base/wire.ts";
import { judgeServer, unreachedVerdict } from "../devices/mcp/judge.ts";
import { beat } from "./connection.ts";
import { failureAnswer } from "./failure_answer.ts";
import { withRuleFindings } from "./judge_rules.ts";
import { LineQueue } from "./line_queue.ts";
import { type OpenOptions, type ServerSessionsDeps, trustBy } from "./server_sessions.ts";
import { type NamedServer, namedServer } from "./server_source.ts";

type Lines = LineQueue<JudgeLine>;

export class Judge {
  readonly #deps: ServerSessionsDeps;
  /** Everything that is being judged, until nothing is left of it. */
  readonly #open = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(deps: ServerSessionsDeps) {
    this.#deps = deps;
  }

  /** Judges; the body is what the client reads. */
  open(request: JudgeRequest, options: OpenOptions): ReadableStream<Uint8Array<ArrayBuffer>> {
    const lines: Lines = new LineQueue();
    const gone = new AbortController();
    const stopBeating = beat(lines, { clock: this.#deps.clock, ...options });
    lines.onGone = () => gone.abort(new Error("The client has gone"));
    const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
    const work = this.#judge(request, { lines, signal, questions: options.questions })
      .then(() => lines.end({ line: "judged" }))
      .catch((thrown) => lines.end({ line: "error", ...failureAnswer(thrown) }))
      .finally(() => {
        stopBeating();
        this.#open.delete(work);
        options.onOver();
      });
    this.#open.add(work);
    return lines.body;
  }

  /** Ends all of it. Never rejects; bounded by the end of the slowest server. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The daemon stops"));
    await Promise.all(this.#open);
  }

  async #judge(
    request: JudgeRequest,
    facts: { lines: Lines; signal: AbortSignal } & Pick<OpenOptions, "questions">,
  ): Promise<void> {
    const named = await this.#nameAll(request, facts);
    facts.signal.throwIfAborted();
    await Promise.all(named.map(async (server, index) => {
      const verdict = "error" in server
        ? unreachedVerdict(nameOf(server.reference), server.error)
        : await this.#judgeOne(server, facts.signal);
      facts.lines.push({ line: "verdict", index, verdict });
    }));
  }

  /** How each is reached, or why it isn't; one after the other, since a person may be asked. */
  async #nameAll(
    { servers, client, trust }: JudgeRequest,
    { lines, signal, questions }:
      & { lines: Lines; signal: AbortSignal }
      & Pick<
        OpenOptions,
        "questions"
      >,
  ): Promise<(NamedServer | { reference: ServerReference; error: SysError })[]> {
    const observer = client.interactive ? trustBy(lines, questions, signal) : {};
    const refusals = new Map<string, SysError>();
    const named: (NamedServer | { reference: ServerReference; error: SysError })[] = [];
    for (const reference of servers) {
      const source = sourceOf(reference);
      const refused = refusals.get(source);
      try {
        if (refused !== undefined) throw refused;
        const notice = (message: string) => lines.push({ line: "notice", message });
        const consent = { trust, observer, notice };
        named.push(await namedServer(this.#deps, reference, { client, consent }));
      } catch (thrown) {
        const error = redactError(thrown, NO_SECRETS);
        if (error.code === "UNTRUSTED") refusals.set(source, error);
        named.push({ reference, error });
      }
    }
    return named;
  }

  async #judgeOne(
    { launch, redaction, rules }: NamedServer,
    signal: AbortSignal,
  ): Promise<ServerVerdict> {
    const { clock, keeper } = this.#deps;
    const clientInfo = { name: "rnix", version: VERSION };
    const deps = { clock, keeper, clientInfo, redaction, signal };
    return withRuleFindings(await judgeServer(launch, deps), rules);
  }
}

/** Errors in naming a server never hold a value. */
const NO_SECRETS = createRedaction({ intake: [] }).sink;

/** What consent is for. */
function sourceOf(reference: ServerReference): string {
  return reference.kind === "agent" ? `agent ${reference.manifest}` : reference.kind;
}

function nameOf(reference: ServerReference): string {
  switch (reference.kind) {
    case "configured":
      return reference.name;
    case "agent":
      return reference.server;
    case "url":
      return reference.url;
    case "command":
      return reference.command;
  }
}
