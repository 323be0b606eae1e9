import assert from "node:assert/strict";
import type { Entry, EntryBody } from "../journal/entry.ts";
import type { Json } from "../base/json.ts";
import type { AssistantPart, Message } from "../llm/model.ts";
import type { Action } from "../kernel/program.ts";
import { agentProgram, type AgentPrompt } from "./agent_program.ts";

const SPEC = { sha256: "0".repeat(64), bytes: 2 };
/** About a hundred tokens. */
const LONG = "w".repeat(400);

/** An agent with a window, that folds what it is told. */
class Agent {
  readonly program;
  state;
  #seq = 0;

  constructor(contextWindow?: number) {
    this.program = agentProgram("Be brief.", { contextWindow });
    this.state = this.program.initial();
  }

  tell(...bodies: EntryBody[]): this {
    for (const body of bodies) {
      this.#seq += 1;
      const entry: Entry = { v: 1, seq: this.#seq, ts: this.#seq, synced: 0, ...body };
      this.state = this.program.reduce(this.state, entry);
    }
    return this;
  }

  get action(): Action<AgentPrompt> {
    const [action, other] = this.program.decide(this.state);
    assert.ok(action !== undefined && other === undefined);
    return action;
  }

  get compaction() {
    const { action } = this;
    assert.ok(action.kind === "compact", JSON.stringify(action));
    return action;
  }

  get messages(): readonly Message[] {
    return this.state.messages;
  }

  /** Compacts as its own action says. */
  compact(summary?: string): this {
    const { turn, attempt, from, to } = this.compaction;
    const given = summary === undefined ? {} : { summary };
    return this.tell({
      type: "context.compacted",
      turn,
      attempt,
      from,
      to,
      ...given,
      duration_ms: 1,
    });
  }

  exceed(): this {
    const { action } = this;
    assert.ok(action.kind === "model");
    const { turn, attempt } = action;
    const error = { code: "INVALID", message: "Too long" };
    return this.tell({ type: "context.exceeded", turn, attempt, error });
  }
}

const STARTED: EntryBody = {
  type: "run.started",
  run_id: "r",
  pid: 1,
  program: "agent",
  agent: "a",
  spec: SPEC,
  intent: "Do it",
  cwd: "/",
  model: "m",
  budget: {},
  rnix_version: "0",
};

function resumed(intent?: string): EntryBody {
  return {
    type: "run.resumed",
    pid: 2,
    spec: SPEC,
    ...(intent === undefined ? {} : { intent }),
    model: "m",
    budget: {},
    active_ms: 0,
    rnix_version: "0",
  };
}

function reply(turn: number, parts: AssistantPart[], tokens = 1): EntryBody {
  return {
    type: "model.reply",
    turn,
    attempt: 1,
    message: { role: "assistant", parts } as unknown as Json,
    usage: { input_tokens: tokens, output_tokens: 0 },
    finish_reason: "stop",
    duration_ms: 1,
  };
}

/** A turn with one call and its result. */
function turn(
  number: number,
  { result = LONG, effect = "write" as const as "write" | "read", tokens = 1, think = false } = {},
): EntryBody[] {
  const call = `t${number}.1`;
  const parts: AssistantPart[] = [
    ...(think
      ? [{ type: "reasoning" as const, text: "Hm", meta: { signature: `s${number}` } }]
      : []),
    { type: "tool-call", provider_id: `id${number}`, tool: `tool${number}`, input: { n: number } },
  ];
  return [
    reply(number, parts, tokens),
    {
      type: "call.intent",
      call,
      attempt: 1,
      tool: `tool${number}`,
      device: "/d",
      effect,
      input_sha256: "",
      idempotency_key: call,
    },
    {
      type: "call.result",
      call,
      attempt: 1,
      duration_ms: 1,
      outcome: "ok",
      content: [{ type: "text", text: result }],
    },
  ];
}

function turns(count: number, facts: Parameters<typeof turn>[1] = {}): EntryBody[] {
  return Array.from({ length: count }, (_, index) => turn(index + 1, facts)).flat();
}

/** Every reply has the results of its calls right after it. */
function assertWhole(messages: readonly Message[]): void {
  messages.forEach((message, index) => {
    const next = messages[index + 1];
    if (message.role === "assistant") {
      const ids = next?.role === "tool" ? next.results.map(({ id }) => id) : [];
      assert.deepEqual(ids, message.callIds);
    } else if (message.role === "tool") assert.equal(messages[index - 1]?.role, "assistant");
  });
}

Deno.test("a turn that would be over four fifths of the window is preceded by a compaction; another isn't", () => {
  const agent = new Agent(1_150).tell(STARTED, ...turns(3));
  assert.equal(agent.action.kind, "model");
  agent.tell(...turn(4), ...turn(5), ...turn(6));
  assert.equal(agent.compaction.key, "c7#1");
  assert.equal(new Agent().tell(STARTED, ...turns(60)).action.kind, "model", "no window is known");
});

Deno.test("what the provider says of a prompt's size counts, tools included, over what its characters say", () => {
  const agent = new Agent(1_000_000).tell(STARTED, ...turns(6));
  assert.equal(agent.action.kind, "model");
  agent.tell(...turn(7, { tokens: 799_000 }));
  assert.equal(agent.action.kind, "model");
  const full = new Agent(1_000_000).tell(STARTED, ...turns(6, { result: "w".repeat(200_000) }));
  full.tell(...turn(7, { tokens: 801_000 }));
  assert.equal(full.action.kind, "compact");
});

Deno.test("an image counts as what it costs a model, not as its bytes", () => {
  const agent = new Agent(100_000).tell(STARTED, ...turns(2), ...turn(3).slice(0, 2), {
    type: "call.result",
    call: "t3.1",
    attempt: 1,
    duration_ms: 1,
    outcome: "ok",
    content: [{ type: "image", mimeType: "image/png", data: "A".repeat(2_000_000) }],
  });
  assert.equal(agent.action.kind, "model");
});

Deno.test("the summary stands in the place of whole turns; the intent and the last turns stay as they are", () => {
  const agent = new Agent(1_500).tell(STARTED, ...turns(8, { think: true }));
  const before = agent.messages.slice();
  const { from, to } = agent.compaction;
  assert.equal(from, 1);
  agent.compact("It went well.");
  const [first, summary, ...rest] = agent.messages;
  assert.equal(first, before[0]);
  assert.ok(summary?.role === "user");
  assert.match(summary.text, /^\[rnix\] The conversation became too long.*\n\nIt went well\./);
  assert.equal(summary.repliesBefore, 8 - rest.filter(({ role }) => role === "assistant").length);
  assert.deepEqual(rest, before.slice(to), "kept to the letter, signatures included");
  assert.equal(rest[0]?.role, "assistant");
  assertWhole(agent.messages);
  assert.equal(agent.action.kind, "model", "once for a turn");
  assert.equal(agent.action.kind === "model" && agent.action.turn, 9);
});

Deno.test("at least the last turn stays, however long it is", () => {
  const agent = new Agent(1_500).tell(
    STARTED,
    ...turns(3),
    ...turn(4, { result: LONG.repeat(12) }),
  );
  const last = agent.messages.slice(-2);
  agent.compact("S");
  assert.deepEqual(agent.messages.slice(2), last);
});

Deno.test("a compaction that would win next to nothing isn't made", () => {
  const agent = new Agent(5_000).tell(
    STARTED,
    ...turns(1),
    ...turn(2, { result: LONG.repeat(45) }),
  );
  assert.equal(agent.action.kind, "model");
});

Deno.test("all that the user said stays word for word, over several compactions", () => {
  const agent = new Agent(1_200).tell(
    STARTED,
    ...turns(2),
    reply(3, [{ type: "text", text: "Ok" }]),
  );
  const totals = { turns: 1, tokens: 1, tool_calls: 0, active_ms: 1 };
  agent.tell(
    { type: "run.exited", status: "completed", exit_code: 0, result: "", totals },
    resumed("And now that"),
  );
  let number = 4;
  for (let times = 0; times < 2; times += 1) {
    while (agent.action.kind === "model") agent.tell(...turn(number++));
    agent.compact(`Summary ${times}`);
  }
  const said = agent.messages.flatMap((message) => message.role === "user" ? [message.text] : []);
  assert.deepEqual(said.slice(0, 2), ["Do it", "And now that"]);
  assert.equal(said.length, 3, "one summary has taken the place of the other");
  assert.match(said[2] ?? "", /Summary 1/);
  const counted = agent.messages.reduce(
    (sum, message) =>
      sum +
      (message.role === "user" ? message.repliesBefore ?? 0 : message.role === "assistant" ? 1 : 0),
    0,
  );
  assert.equal(counted, number - 1, "every reply is still counted");
  assertWhole(agent.messages);
});

Deno.test("calls that may have had effects are named by rnix itself, reads aren't, and not only the first time", () => {
  const agent = new Agent(1_000).tell(STARTED, ...turn(1), ...turn(2, { effect: "read" }));
  let number = 3;
  for (let times = 0; times < 2; times += 1) {
    while (agent.action.kind === "model") agent.tell(...turn(number++, { effect: "read" }));
    agent.compact("S");
  }
  const text = JSON.stringify(agent.messages);
  assert.match(text, /must not be repeated without need:\\n- tool1 \{.*?\}: ok"/);
  assert.doesNotMatch(text, /tool2 \{/);
});

Deno.test("a call whose outcome is unknown is named as such when its turn is gone", () => {
  const agent = new Agent(1_500).tell(STARTED, ...turn(1).slice(0, 2), {
    type: "call.settled",
    call: "t1.1",
    attempt: 1,
    how: "fail",
    by: "user",
  });
  const totals = { turns: 1, tokens: 1, tool_calls: 0, active_ms: 1 };
  agent.tell(
    { type: "run.exited", status: "failed", exit_code: 1, result: "", totals },
    resumed("Go on then"),
  );
  for (let number = 2; agent.action.kind === "model"; number += 1) agent.tell(...turn(number));
  agent.compact("S");
  assert.match(JSON.stringify(agent.messages), /- tool1 \{.*?\}: outcome unknown/);
});

Deno.test("without a summary the turns stay, and what their results held is left out", () => {
  const agent = new Agent(1_500).tell(STARTED, ...turns(8, { think: true }));
  const before = agent.messages.slice();
  const { to } = agent.compaction;
  agent.compact();
  assert.equal(agent.messages.length, before.length);
  agent.messages.forEach((message, index) => {
    if (index >= to || message.role !== "tool") return assert.deepEqual(message, before[index]);
    assert.match(JSON.stringify(message.results[0]?.content), /this result was left out/);
    assert.equal(
      message.results[0]?.tool,
      before[index]?.role === "tool" && before[index].results[0]?.tool,
    );
  });
  assertWhole(agent.messages);
  assert.equal(agent.action.kind, "model");
});

Deno.test("without a known window the history is compacted when the provider refuses it, once for a turn", () => {
  const agent = new Agent().tell(STARTED, ...turns(6));
  assert.ok(agent.action.kind === "model" && agent.action.compactable);
  agent.exceed();
  assert.equal(agent.compaction.key, "c7#2");
  agent.compact("S");
  assert.ok(agent.action.kind === "model");
  assert.deepEqual([agent.action.key, agent.action.compactable], ["m7#2", undefined]);
  agent.tell(...turn(7));
  assert.ok(agent.action.kind === "model" && agent.action.compactable, "the next turn may again");
});

Deno.test("one turn that is too long alone loses what its calls brought, and no summary is asked for", () => {
  const agent = new Agent().tell(STARTED, ...turns(1)).exceed();
  assert.equal(agent.compaction.prompt, undefined);
  agent.compact();
  assert.doesNotMatch(JSON.stringify(agent.messages), /www/);
  assertWhole(agent.messages);
});

Deno.test("with nothing to leave out the provider's refusal stands", () => {
  const agent = new Agent().tell(STARTED);
  assert.ok(agent.action.kind === "model");
  assert.equal(agent.action.compactable, undefined);
  const small = new Agent().tell(STARTED, ...turns(1, { result: "ok" })).exceed();
  assert.ok(small.action.kind === "model");
  assert.equal(small.action.compactable, undefined);
});

Deno.test("an incarnation that comes after asks for the same compaction under another key", () => {
  const agent = new Agent(1_500).tell(STARTED, ...turns(8));
  const before = agent.compaction;
  agent.tell(resumed());
  assert.equal(agent.compaction.key, "c9#2");
  assert.deepEqual(agent.compaction.prompt, before.prompt);
});

Deno.test("a request for a summary holds the part as text, shortened until it fits", () => {
  const agent = new Agent(3_000).tell(
    STARTED,
    ...turns(2),
    ...turns(9, { result: `${"é😀".repeat(3_000)}` }).slice(6),
  );
  const { prompt } = agent.compaction;
  assert.ok(prompt !== undefined);
  assert.equal(prompt.purpose, "summary");
  const [message, other] = prompt.messages;
  assert.ok(message?.role === "user" && other === undefined);
  assert.ok(message.text.length < 3_000 * 4 * 0.7 && message.text.isWellFormed());
  assert.match(message.text, /USER: Do it/);
  assert.match(message.text, /CALL tool1 \{"n":1\}\n\nRESULT of tool1: www/);
  assert.match(message.text, /characters left out/);
});

Deno.test("a summary is text: none in a reply without it, with calls, or withheld", () => {
  const program = agentProgram("");
  const of = (parts: AssistantPart[], reason = "stop") =>
    program.summaryOf?.({ role: "assistant", parts } as unknown as Json, reason);
  const text = (content: string): AssistantPart => ({ type: "text", text: content });
  assert.equal(of([{ type: "reasoning", text: "Hm" }, text(" So "), text("far ")]), "So far");
  assert.equal(of([text("  ")]), undefined);
  assert.equal(of([text("x")], "content-filter"), undefined);
  const call: AssistantPart = { type: "tool-call", provider_id: "", tool: "t", input: {} };
  assert.equal(of([text("Let me look"), call]), undefined);
  const long = of([text("😀".repeat(40_000))], "length") ?? "";
  assert.ok(long.length < 30_000 && long.isWellFormed());
});
