import assert from "node:assert/strict";
import type { Entry, EntryBody } from "../journal/entry.ts";
import type { Json } from "../base/json.ts";
import type { AssistantPart, Message } from "../llm/model.ts";
import type { Action } from "../kernel/program.ts";
import { agentProgram, type AgentPrompt } from "./agent_program.ts";

type ModelAction = Extract<Action<AgentPrompt>, { kind: "model" }>;

const SPEC = { sha256: "0".repeat(64), bytes: 2 };

/** An agent that folds what it is told. */
class Agent {
  readonly program = agentProgram("Be brief.");
  #state = this.program.initial();
  #seq = 0;

  tell(...bodies: EntryBody[]): this {
    for (const body of bodies) {
      this.#seq += 1;
      const entry: Entry = { v: 1, seq: this.#seq, ts: 1_000 + this.#seq, synced: 0, ...body };
      this.#state = this.program.reduce(this.#state, entry);
    }
    return this;
  }

  get actions(): Action<AgentPrompt>[] {
    return this.program.decide(this.#state);
  }

  get keys(): string[] {
    return this.actions.map((action) =>
      action.kind === "exit" ? `exit ${action.status}` : action.key
    );
  }

  get request(): ModelAction {
    const [action] = this.actions;
    assert.ok(action?.kind === "model", JSON.stringify(action));
    return action;
  }

  get messages(): readonly Message[] {
    return this.request.prompt.messages;
  }
}

function started(intent = "Do it"): EntryBody {
  return {
    type: "run.started",
    run_id: "r",
    pid: 1,
    program: "agent",
    agent: "a",
    spec: SPEC,
    intent,
    cwd: "/",
    model: "m",
    budget: {},
    rnix_version: "0",
  };
}

function intentOf(call: string): EntryBody {
  return {
    type: "call.intent",
    call,
    attempt: 1,
    tool: "pay",
    device: "/mnt/mcp/bank/tools/pay",
    effect: "write",
    input_sha256: "0".repeat(64),
    idempotency_key: `run/${call}`,
  };
}

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

function reply(turn: number, parts: AssistantPart[], finishReason = "stop"): EntryBody {
  return {
    type: "model.reply",
    turn,
    attempt: 1,
    message: { role: "assistant", parts } as unknown as Json,
    usage: { input_tokens: 1, output_tokens: 1 },
    finish_reason: finishReason,
    duration_ms: 1,
  };
}

function call(id: string, tool = "pay", input: Json = {}): AssistantPart {
  return { type: "tool-call", provider_id: id, tool, input };
}

function text(content: string): AssistantPart {
  return { type: "text", text: content };
}

function result(name: string, content: string, attempt = 1): EntryBody {
  return {
    type: "call.result",
    call: name,
    attempt,
    duration_ms: 1,
    outcome: "ok",
    content: [{ type: "text", text: content }],
  };
}

function exited(status: "completed" | "failed" | "killed" = "completed"): EntryBody {
  const totals = { turns: 1, tokens: 1, tool_calls: 0, active_ms: 1 };
  return { type: "run.exited", status, exit_code: 0, result: "", totals };
}

function mounted(server: string, tools: string[]): EntryBody {
  return {
    type: "mount.ready",
    server,
    era: "modern",
    protocol_version: "x",
    tools: Object.fromEntries(tools.map((name) => [name, {
      name: `mcp__${server}__${name}`,
      sha256: "",
      effect: "write",
      risk: "medium",
    }])),
  };
}

Deno.test("an agent waits until its run has started, then asks its model", () => {
  const agent = new Agent();
  assert.deepEqual(agent.actions, []);
  agent.tell(started("Do it"));
  assert.deepEqual(agent.keys, ["m1#1"]);
  assert.deepEqual(agent.messages, [{ role: "user", text: "Do it" }]);
  assert.equal(agent.request.prompt.system, "Be brief.");
});

Deno.test("without an intent the model is told to begin", () => {
  assert.deepEqual(new Agent().tell(started("")).messages, [{ role: "user", text: "Begin." }]);
});

Deno.test("all calls of a reply exist at once; the next request only when all have a result", () => {
  const agent = new Agent().tell(
    started(),
    reply(1, [text("Now"), call("a"), call("b"), call("c")]),
  );
  assert.deepEqual(agent.keys, ["t1.1#1", "t1.2#1", "t1.3#1"]);
  agent.tell(result("t1.2", "B"));
  assert.deepEqual(agent.keys, ["t1.1#1", "t1.3#1"]);
  agent.tell(result("t1.3", "C"), result("t1.1", "A"));
  assert.deepEqual(agent.keys, ["m2#1"]);
  const last = agent.messages.at(-1);
  assert.ok(last?.role === "tool");
  assert.deepEqual(last.results.map(({ id }) => id), ["a", "b", "c"], "in the order of the calls");
});

Deno.test("[A27] provider ids that come again are replaced by rnix's own", () => {
  const agent = new Agent().tell(started());
  for (const turn of [1, 2, 3]) {
    agent.tell(reply(turn, [call("call_00")]), result(`t${turn}.1`, String(turn)));
  }
  const ids = agent.messages.flatMap((message) =>
    message.role === "assistant" ? message.callIds : []
  );
  assert.deepEqual(ids, ["call_00", "t2.1", "t3.1"]);
});

Deno.test("[A29] empty provider ids get rnix's own, which no later provider id meets", () => {
  const agent = new Agent().tell(
    started(),
    reply(1, [call(""), call("t1.1"), call("t2.1")]),
    ...[1, 2, 3].map((index) => result(`t1.${index}`, "x")),
    reply(2, [call(""), call("t1.2")]),
    result("t2.1", "x"),
    result("t2.2", "x"),
  );
  const ids = agent.messages.flatMap((message) =>
    message.role === "assistant" ? message.callIds : []
  );
  assert.deepEqual(ids, ["t1.1", "t1.2", "t2.1", "t2.1-", "t2.2"]);
  assert.equal(new Set(ids).size, ids.length);
});

Deno.test("arguments that aren't JSON are a defect of the call, quoted in short", () => {
  const malformed = `{"text": "${"é😀".repeat(100)}`;
  const part: AssistantPart = {
    ...call("a"),
    type: "tool-call",
    input: null,
    malformed,
  } as AssistantPart;
  const [action] = new Agent().tell(started(), reply(1, [part])).actions;
  assert.ok(action?.kind === "call" && action.defect !== undefined);
  assert.ok(action.defect.length < 250 && action.defect.isWellFormed());
  assert.match(action.defect, /^The arguments are not valid JSON: "/);
  const deep = { ...part, malformed: "[".repeat(50_000) + "]".repeat(50_000) } as AssistantPart;
  const [refused] = new Agent().tell(started(), reply(1, [deep])).actions;
  assert.ok(refused?.kind === "call");
  assert.match(
    refused.defect ?? "",
    /^The arguments are nested too deep \(more than 128 levels\): "/,
  );
  const large = { ...part, malformed: '{"id": 12345678901234567890}' } as AssistantPart;
  const [unsent] = new Agent().tell(started(), reply(1, [large])).actions;
  assert.ok(unsent?.kind === "call");
  assert.match(
    unsent.defect ?? "",
    /^The arguments are not sent, since the number "12345678901234567890" can't be kept exactly/,
  );
});

Deno.test("a call that is to be retried has the next attempt; a late settling of the old one is not missed", () => {
  const agent = new Agent().tell(started(), reply(1, [call("a")]));
  const settled = (how: "retry" | "skip", attempt: number): EntryBody => ({
    type: "call.settled",
    call: "t1.1",
    attempt,
    how,
    by: "policy",
    ...(how === "skip" ? { answer: { outcome: "error" as const, content: [] } } : {}),
  });
  agent.tell(settled("retry", 1));
  assert.deepEqual(agent.keys, ["t1.1#2"]);
  agent.tell(settled("retry", 2));
  assert.deepEqual(agent.keys, ["t1.1#3"]);
  agent.tell(settled("skip", 3));
  assert.deepEqual(agent.keys, ["m2#1"]);
});

Deno.test("an unknown outcome is no result", () => {
  const agent = new Agent().tell(started(), reply(1, [call("a")]), {
    type: "call.result",
    call: "t1.1",
    attempt: 1,
    duration_ms: 1,
    outcome: "unknown",
    cause: "timeout",
  });
  assert.deepEqual(agent.keys, ["t1.1#1"]);
});

Deno.test("a call that fails the run leaves a whole history for a resume", () => {
  const agent = new Agent().tell(started(), reply(1, [call("a"), call("b")]), result("t1.2", "B"), {
    type: "call.settled",
    call: "t1.1",
    attempt: 1,
    how: "fail",
    by: "user",
  });
  assert.deepEqual(agent.keys, ["exit failed"]);
  agent.tell(exited("failed"), resumed());
  const last = agent.messages.at(-1);
  assert.ok(last?.role === "tool");
  assert.match(JSON.stringify(last.results[0]), /UNKNOWN_OUTCOME/);
});

Deno.test("finish reasons: stop completes, length and content-filter fail, whatever was said", () => {
  const end = (reason: string, parts = [text("So far")]) =>
    new Agent().tell(started(), reply(1, parts, reason)).actions[0];
  for (const reason of ["stop", "other", "tool-calls"]) {
    assert.deepEqual(end(reason), { kind: "exit", status: "completed", result: "So far" });
  }
  const cut = end("length");
  assert.ok(cut?.kind === "exit" && cut.status === "failed");
  assert.deepEqual([cut.result, cut.error?.code], ["So far", "RESOURCE_EXHAUSTED"]);
  const filtered = end("content-filter");
  assert.ok(filtered?.kind === "exit" && filtered.error?.code === "PERMISSION");
  assert.deepEqual(end("stop", []), { kind: "exit", status: "completed", result: "" });
});

Deno.test("the result is the text of the last reply, without its reasoning", () => {
  const parts: AssistantPart[] = [{ type: "reasoning", text: "Hm" }, text("One "), text("two")];
  const [action] = new Agent().tell(started(), reply(1, parts)).actions;
  assert.equal(action?.kind === "exit" && action.result, "One two");
});

Deno.test("notes wait while calls are open, so that no call is parted from its result", () => {
  const agent = new Agent().tell(started(), mounted("s", ["a", "b"]), reply(1, [call("x")]));
  agent.tell(mounted("s", ["b"]));
  agent.tell({
    type: "mount.failed",
    server: "t",
    required: false,
    error: { code: "DRIVER", message: "Gone" },
  });
  agent.tell(result("t1.1", "X"));
  const roles = agent.messages.map(({ role }) => role);
  assert.deepEqual(roles, ["user", "assistant", "tool", "user"]);
  assert.deepEqual(agent.messages.at(-1), {
    role: "user",
    text:
      '[rnix] The server "s" has withdrawn tools: mcp__s__a\nThe server "t" is not available: Gone',
  });
});

Deno.test("a server that is missing is told until it is there; of one that is required nobody needs to know", () => {
  const agent = new Agent().tell(started());
  const missing = (server: string, required: boolean) => {
    const error = { code: "DRIVER", message: "Gone" };
    agent.tell({ type: "mount.failed", server, required, error });
  };
  missing("needed", true);
  missing("extra", false);
  agent.tell(exited("failed"), resumed(), mounted("needed", ["a"]));
  missing("extra", false);
  agent.tell(mounted("extra", ["b"]), mounted("extra", ["b"]));
  assert.deepEqual(agent.messages.slice(1), [
    { role: "user", text: '[rnix] The server "extra" is not available: Gone' },
    { role: "user", text: '[rnix] The server "extra" is not available: Gone' },
    { role: "user", text: '[rnix] The server "extra" is available now' },
  ]);
});

Deno.test("a server may be named as every object has a member", () => {
  const agent = new Agent().tell(started(), mounted("constructor", ["a"]));
  assert.deepEqual(agent.keys, ["m1#1"]);
});

Deno.test("an agent that only has to exit is told nothing any more", () => {
  const agent = new Agent().tell(started(), mounted("s", ["a"]), reply(1, [text("Done")]));
  agent.tell(resumed(), mounted("s", []));
  assert.deepEqual(agent.keys, ["exit completed"]);
});

Deno.test("each incarnation asks with a new attempt; a reply resets it", () => {
  const agent = new Agent().tell(started(), resumed(), resumed());
  assert.deepEqual(agent.keys, ["m1#3"]);
  agent.tell(reply(1, [call("a")]), result("t1.1", "A"));
  assert.deepEqual(agent.keys, ["m2#1"]);
});

Deno.test("a completed agent goes on with a new intent, a failed one with a word", () => {
  const agent = new Agent().tell(
    started(),
    reply(1, [text("Done")]),
    exited(),
    resumed("And now?"),
  );
  assert.deepEqual(agent.keys, ["m2#2"]);
  assert.deepEqual(agent.messages.at(-1), { role: "user", text: "And now?" });
  const failed = new Agent().tell(
    started(),
    reply(1, [text("Half")], "length"),
    exited("failed"),
    resumed(),
  );
  assert.deepEqual(failed.messages.at(-1), { role: "user", text: "Go on." });
  const killed = new Agent().tell(started(), exited("killed"), resumed());
  assert.deepEqual(killed.messages.map(({ role }) => role), ["user"]);
});

Deno.test("turn numbers of replies that were cut are never used again", () => {
  const agent = new Agent().tell(started(), { type: "journal.cut", from_seq: 2, records: 5 });
  assert.equal(agent.request.turn, 6);
  agent.tell(reply(6, [call("a")]));
  assert.deepEqual(agent.keys, ["t6.1#1"]);
  agent.tell({ type: "journal.cut", from_seq: 4, records: 3 }, result("t6.1", "A"));
  assert.equal(agent.request.turn, 10);
});

Deno.test("the model is told of records that were cut, with the calls that are known of, and between turns", () => {
  const agent = new Agent().tell(
    started(),
    reply(1, [call("a")]),
    intentOf("t1.1"),
    intentOf("t2.1"),
    { type: "journal.cut", from_seq: 4, records: 3 },
  );
  assert.deepEqual(agent.keys, ["t1.1#1"]);
  agent.tell(result("t1.1", "A"));
  const told = agent.messages.at(-1);
  assert.equal(told?.role, "user");
  assert.match(JSON.stringify(told), /records of this run were lost.*effect: t2\.1 \(.*Check/);
  assert.doesNotMatch(JSON.stringify(told), /t1\.1/);
});

Deno.test("the hash of a request changes with its system text and every message, and with nothing else", () => {
  const agent = new Agent().tell(started());
  const first = agent.request.prompt.sha256;
  agent.tell(resumed(), { type: "budget.changed", budget: { turns: 3 } });
  assert.equal(agent.request.prompt.sha256, first);
  agent.tell(reply(1, [call("a")]), result("t1.1", "A"));
  const second = agent.request.prompt.sha256;
  assert.notEqual(second, first);
  const other = new Agent().tell(started(), reply(1, [call("a")]), result("t1.1", "B"));
  assert.notEqual(other.request.prompt.sha256, second);
  const state = agent.program.initial();
  const body = started();
  const head = { v: 1, seq: 1, ts: 1, synced: 0 };
  agent.program.reduce(state, { ...head, ...body });
  const hashOf = (system: string) => {
    const [action] = agentProgram(system).decide(state);
    return action?.kind === "model" ? action.prompt.sha256 : undefined;
  };
  assert.equal(hashOf("Be brief."), first);
  assert.notEqual(hashOf("Be long."), first);
});

Deno.test("a token is guessed at four characters, system text included", () => {
  const short = new Agent().tell(started("x")).request.prompt.tokensEstimate;
  const long = new Agent().tell(started("x".repeat(4_001))).request.prompt.tokensEstimate;
  assert.equal(long - short, 1_000);
});

Deno.test("entries of calls that aren't open are passed over", () => {
  const agent = new Agent().tell(started(), reply(1, [call("a")]), result("t1.1", "A"));
  const before = agent.messages.length;
  agent.tell(result("t1.1", "again"), result("t9.9", "?"));
  assert.equal(agent.messages.length, before);
});
