/** `rnix mcp test`: whether an MCP server can be connected and lists what it says that it has, step by step. */
import { isJsonObject } from "../../base/json.ts";
import { EXIT_FAILED, EXIT_MOUNT } from "../../base/exit.ts";
import type { ErrorBody } from "../../base/operations.ts";
import type { ServerFacts, ServerNews, ServerSession } from "../../base/server_operations.ts";
import { counted, elapsed } from "../amounts.ts";
import type { Command, Context, Outcome } from "../command.ts";
import { errorText, failureOf } from "../failure.ts";
import { oneLine } from "../plain_text.ts";
import { textTable } from "../table.ts";
import {
  SERVER_DETAILS,
  SERVER_FLAGS,
  SERVER_POSITIONALS,
  serverRequest,
  timeoutOf,
} from "./mcp_connect_flags.ts";
import { newsText } from "./mcp_connect_text.ts";
import { questionerOf } from "./mcp_connect_trust.ts";

/** What is listed: by which request, under which name, and the word for one of them. */
const LISTINGS = [
  { step: "tools", method: "tools/list", noun: "tool" },
  { step: "resources", method: "resources/list", noun: "resource" },
  { step: "prompts", method: "prompts/list", noun: "prompt" },
] as const;

/** One step of the test. */
export interface TestStep {
  step: "connect" | "tools" | "resources" | "prompts";
  /** `skipped`: the server doesn't say that it has any. */
  state: "ok" | "failed" | "skipped";
  duration_ms: number;
  count?: number;
  error?: ErrorBody;
}

export const mcpTest: Command = {
  name: "mcp test",
  summary: "Test an MCP server: connect it and list what it has",
  positionals: SERVER_POSITIONALS,
  flags: SERVER_FLAGS,
  details: `${SERVER_DETAILS}

Exits 1 if a step failed, 2 if there is no such server.`,
  async run(invocation, context) {
    const request = serverRequest(invocation, context);
    const timeoutMs = timeoutOf(invocation);
    const questioner = questionerOf(context);
    const system = await context.system();
    const { clock } = context.world;
    const startMs = clock.monotonic();
    let session: ServerSession;
    try {
      session = await system.openServer(request, {
        onNews: (news) => warn(context, news),
        confirmTrust: (question) => questioner.confirmTrust(question),
      });
    } catch (thrown) {
      const { error, exitCode } = failureOf(thrown);
      if (exitCode !== EXIT_MOUNT) throw thrown;
      const duration_ms = Math.round(clock.monotonic() - startMs);
      return outcomeOf(context, undefined, [{
        step: "connect",
        state: "failed",
        duration_ms,
        error,
      }]);
    }
    try {
      const steps = await listings(session, timeoutMs, context);
      const { facts } = session;
      const connect: TestStep = { step: "connect", state: "ok", duration_ms: facts.connect_ms };
      return outcomeOf(context, facts, [connect, ...steps]);
    } finally {
      await session.close();
    }
  },
};

function warn({ quiet, json, world, style }: Context, news: ServerNews): void {
  if (!quiet && !json && news.kind === "warning") {
    world.stderr.write(`${style.dim(newsText(news))}\n`);
  }
}

async function listings(
  session: ServerSession,
  timeoutMs: number | undefined,
  { world: { clock } }: Context,
): Promise<TestStep[]> {
  const steps: TestStep[] = [];
  const limit = timeoutMs === undefined ? {} : { timeout_ms: timeoutMs };
  for (const { step, method } of LISTINGS) {
    if (session.facts.capabilities[step] === undefined) {
      steps.push({ step, state: "skipped", duration_ms: 0 });
      continue;
    }
    const startMs = clock.monotonic();
    const answer = await session.ask({ method, params: {}, ...limit });
    const duration_ms = Math.round(clock.monotonic() - startMs);
    if (answer.outcome !== "ok") {
      steps.push({ step, state: "failed", duration_ms, error: answer.error });
      continue;
    }
    const items = isJsonObject(answer.result) ? answer.result[step] : undefined;
    const count = Array.isArray(items) ? items.length : 0;
    steps.push({ step, state: "ok", duration_ms, count });
  }
  return steps;
}

function outcomeOf(
  context: Context,
  facts: ServerFacts | undefined,
  steps: readonly TestStep[],
): Outcome {
  const failed = steps.find(({ state }) => state === "failed");
  const remarks = steps.flatMap(({ error }) => error === undefined ? [] : [errorText(error)]);
  return {
    exitCode: failed === undefined ? 0 : EXIT_FAILED,
    data: { server: facts ?? null, steps },
    text: stepLines(facts, steps, context.world.stdout.isTerminal).join("\n"),
    remarks,
    ...(failed?.error === undefined ? {} : { error: failed.error, errorTold: true as const }),
  };
}

const MARKS = {
  terminal: { ok: "✓", failed: "✗", skipped: "-" },
  plain: { ok: "ok", failed: "failed", skipped: "skipped" },
} as const;

/** A line for each step: mark, name, time, what was found. */
export function stepLines(
  facts: ServerFacts | undefined,
  steps: readonly TestStep[],
  isTerminal: boolean,
): string[] {
  const marks = isTerminal ? MARKS.terminal : MARKS.plain;
  const rows = steps.map((each) => [
    marks[each.state],
    each.step,
    each.state === "skipped" ? "-" : elapsed(each.duration_ms),
    foundText(facts, each),
  ]);
  const headings = [{ heading: "" }, { heading: "" }, { heading: "", right: true as const }];
  return textTable([...headings, { heading: "" }], rows).slice(1);
}

function foundText(
  facts: ServerFacts | undefined,
  { step, state, count, error }: TestStep,
): string {
  if (state === "failed") return oneLine(error?.message.split(/; last lines|\n/, 1)[0] ?? "");
  if (state === "skipped") return "the server has none";
  if (step === "connect") return facts === undefined ? "" : connectedText(facts);
  const noun = LISTINGS.find((each) => each.step === step)?.noun ?? step;
  return counted(count ?? 0, noun);
}

function connectedText({ server_info, protocol_version, transport }: ServerFacts): string {
  const { name, version } = server_info ?? {};
  const called = [name, version].filter((part) => typeof part === "string").join(" ");
  return oneLine(
    [called, `MCP ${protocol_version}`, transport].filter((part) => part !== "").join(", "),
  );
}
