import assert from "node:assert/strict";
import type { Json } from "../base/json.ts";
import type { Entry, EntryBody } from "../journal/entry.ts";
import type { Action } from "../kernel/program.ts";
import { parseManifest } from "../manifest/parse_manifest.ts";
import { Problems } from "../manifest/problems.ts";
import type { PromptHead } from "../kernel/program.ts";
import type { Validate } from "./answer.ts";
import { workflowProgram } from "./workflow_program.ts";

const SPEC = { sha256: "0".repeat(64), bytes: 2 };
const TOTALS = { turns: 0, tokens: 0, tool_calls: 0, active_ms: 0 };

type Call = Extract<Action<PromptHead>, { kind: "call" }>;

/** Says whether a value is an object with a number `n`. */
const hasNumber: Validate = (value) =>
  typeof value === "object" && value !== null && "n" in value && typeof value["n"] === "number"
    ? undefined
    : "/n must be number";

/** A workflow that is told what comes, as the kernel would; it keeps the order of starts. */
class Stage {
  readonly program;
  readonly starts: string[] = [];
  #state;
  #seq = 0;

  constructor(nodes: string, { head = "", values = {}, intent = "" } = {}) {
    const problems = new Problems();
    const text = `kind: workflow\nname: w\n${head}\nnodes:\n${nodes}`;
    const { manifest } = parseManifest(
      text,
      { file: "w", instructionsBeside: undefined },
      problems,
    );
    const workflow = manifest?.workflow;
    assert.ok(workflow !== undefined, JSON.stringify(problems.list));
    const typed = workflow.nodes.filter(({ output }) => output !== undefined);
    const validators = new Map(typed.map(({ name }) => [name, hasNumber]));
    this.program = workflowProgram<PromptHead>({ ...workflow, values }, validators);
    this.#state = this.program.initial();
    this.tell({
      type: "run.started",
      run_id: "r",
      pid: 1,
      program: "workflow",
      agent: "w",
      spec: SPEC,
      intent,
      cwd: "/",
      model: "workflow",
      budget: {},
      rnix_version: "0",
    });
  }

  tell(body: EntryBody): void {
    this.#seq += 1;
    const entry: Entry = { v: 1, seq: this.#seq, ts: 1_000 + this.#seq, synced: 0, ...body };
    // What is saved and loaded after every entry is as good as what was never interrupted.
    const saved = JSON.parse(JSON.stringify(this.program.save(this.#state)));
    this.#state = this.program.reduce(this.program.load(saved), entry);
  }

  get actions(): Action<PromptHead>[] {
    return this.program.decide(this.#state);
  }

  get calls(): Call[] {
    return this.actions.filter((action) => action.kind === "call");
  }

  /** Keys of what should exist now; of an exit its status. */
  get keys(): string[] {
    return this.actions.map((action) =>
      action.kind === "exit" ? `exit ${action.status}` : action.key
    );
  }

  get exit() {
    const exit = this.actions.find((action) => action.kind === "exit");
    assert.ok(exit?.kind === "exit", this.keys.join());
    return exit;
  }

  intentOf(call: string): string {
    const found = this.calls.find((one) => one.call === call);
    assert.ok(found !== undefined, `${call} is not among ${this.keys}`);
    assert.ok(
      typeof found.input === "object" && found.input !== null && !Array.isArray(found.input),
    );
    return String(found.input["intent"]);
  }

  /** Starts whatever should exist and doesn't, as the runner does. */
  start(): string[] {
    const begun = this.calls.filter(({ key }) => !this.starts.includes(key));
    for (const { key, call, attempt, tool, defect } of begun) {
      this.starts.push(key);
      if (defect !== undefined) {
        const error = { code: "INVALID", message: defect };
        this.#result(call, attempt, "error", `[INVALID] ${defect}`, error);
        continue;
      }
      this.tell({
        type: "call.intent",
        call,
        attempt,
        tool,
        device: "d",
        effect: "write",
        input_sha256: "0".repeat(64),
        idempotency_key: "k",
        child_run_id: "c",
      });
    }
    return begun.map(({ key }) => key);
  }

  ok(call: string, text: string, attempt = 1): void {
    this.#result(call, attempt, "ok", text);
  }

  fail(call: string, text = "No luck", attempt = 1): void {
    this.#result(call, attempt, "error", text);
  }

  /** Answers everything that is begun, until it ends or has to wait. */
  finish(answer: (call: string) => string = (call) => `${call} done`): void {
    for (let round = 0; round < 200; round++) {
      this.start();
      const [next] = this.calls;
      if (next === undefined) return;
      this.ok(next.call, answer(next.call), next.attempt);
    }
  }

  resume(status: "failed" | "completed" | "killed", intent?: string): void {
    this.tell({ type: "run.exited", status, exit_code: 1, result: "", totals: TOTALS });
    this.tell({
      type: "run.resumed",
      pid: 2,
      spec: SPEC,
      ...(intent === undefined ? {} : { intent }),
      model: "workflow",
      budget: {},
      active_ms: 0,
      rnix_version: "0",
    });
  }

  #result(
    call: string,
    attempt: number,
    outcome: "ok" | "error",
    text: string,
    error?: { code: string; message: string },
  ): void {
    const content: Json[] = text === "" ? [] : [{ type: "text", text }];
    const more = error === undefined ? {} : { error };
    this.tell({ type: "call.result", call, attempt, outcome, content, duration_ms: 1, ...more });
  }
}

const simple = (name: string, more = "") => `  ${name}: { agent: x, intent: ${name}${more} }\n`;
const after = (...names: string[]) => `, depends_on: [${names}]`;

Deno.test("nodes start as soon as their own dependencies are over, not layer by layer", () => {
  const stage = new Stage(
    simple("a") + simple("b") + simple("c", after("a")) + simple("d", after("c")) +
      simple("e", after("b", "d")),
  );
  assert.deepEqual(stage.start(), ["n.a#1", "n.b#1"]);
  stage.ok("n.a", "A");
  assert.deepEqual(stage.start(), ["n.c#1"]);
  stage.ok("n.c", "C");
  assert.deepEqual(stage.start(), ["n.d#1"]);
  stage.ok("n.d", "D");
  assert.deepEqual(stage.start(), []);
  stage.ok("n.b", "B");
  assert.deepEqual(stage.start(), ["n.e#1"]);
  stage.ok("n.e", "E");
  assert.deepEqual(stage.exit, { kind: "exit", status: "completed", result: "E" });
});

Deno.test("what is at work is given as long as it is, so that a resume takes it up again", () => {
  const stage = new Stage(simple("a") + simple("b", after("a")));
  stage.start();
  const before = stage.actions;
  assert.deepEqual(stage.actions, before);
  stage.tell({
    type: "run.suspended",
    reason: "interrupted",
    reasons: ["interrupted"],
    totals: TOTALS,
  });
  assert.deepEqual(stage.actions, before);
});

Deno.test("never more than max_parallel are at work, in the order of the file", () => {
  const stage = new Stage(
    `  all: { agent: x, intent: "\${{ item }}", for_each: ${
      JSON.stringify(Array.from({ length: 50 }, (_, index) => index))
    } }\n`,
    { head: "max_parallel: 8" },
  );
  assert.deepEqual(stage.start(), Array.from({ length: 8 }, (_, index) => `n.all.${index}#1`));
  let most = 0;
  for (let index = 0; index < 50; index++) {
    most = Math.max(most, stage.calls.length);
    stage.ok(`n.all.${index}`, String(index));
    stage.start();
  }
  assert.equal(most, 8);
  assert.deepEqual(stage.starts, Array.from({ length: 50 }, (_, index) => `n.all.${index}#1`));
  assert.equal(stage.exit.status, "completed");
});

Deno.test("results, parameters and the intent are filled in, and are never read as expressions", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: "\${{ intent }} \${{ params.p }}" }
  b: { agent: y, intent: "<\${{ nodes.a.result }}>", depends_on: [a] }\n`,
    {
      head: "parameters: { p: { default: 1 } }\nresult: 'End: ${{ nodes.b.result }}'",
      values: { p: 7 },
      intent: "Do",
    },
  );
  assert.equal(stage.intentOf("n.a"), "Do 7");
  stage.start();
  stage.ok("n.a", "${{ params.p }} $${{");
  assert.equal(stage.intentOf("n.b"), "<${{ params.p }} $${{>");
  assert.equal(stage.calls[0]?.tool, "agent__y");
  stage.start();
  stage.ok("n.b", "B");
  assert.equal(stage.exit.result, "End: B");
});

Deno.test("on_failure stop: nothing new begins, what is at work is awaited, the run fails", () => {
  const stage = new Stage(simple("a") + simple("b") + simple("c", after("b")));
  stage.start();
  stage.fail("n.a", "It broke\nin two");
  assert.deepEqual(stage.keys, ["n.b#1"]);
  stage.ok("n.b", "B");
  assert.deepEqual(stage.exit, {
    kind: "exit",
    status: "failed",
    result: "",
    error: { code: "DRIVER", message: 'Node "a" failed: It broke in two' },
  });
});

Deno.test("on_failure continue: what waits for it is skipped, the rest goes on, and the end says so", () => {
  const stage = new Stage(
    simple("a", ", on_failure: continue") + simple("b", after("a")) + simple("c", after("b")) +
      simple("d"),
  );
  stage.start();
  stage.fail("n.a", "It broke");
  stage.ok("n.d", "D");
  assert.equal(stage.exit.status, "completed");
  assert.equal(
    stage.exit.result,
    'D\n\nNot done:\n- a failed: It broke\n- b was skipped: "a" failed\n- c was skipped: "b" was skipped',
  );
});

Deno.test("a workflow of which nothing completed has failed, also where it was to go on", () => {
  const stage = new Stage(simple("a", ", on_failure: continue"));
  stage.start();
  stage.fail("n.a");
  assert.equal(stage.exit.status, "failed");
});

Deno.test("retry: a new attempt after a pause that doubles, until there are no more", () => {
  const stage = new Stage(simple("a", ", retry: { attempts: 3, backoff: 2s }"));
  stage.start();
  stage.fail("n.a");
  assert.deepEqual(stage.actions, [{ kind: "timer", key: "wait n.a#2", ms: 2_000 }]);
  stage.tell({ type: "timer", key: "wait n.a#2" });
  assert.deepEqual(stage.start(), ["n.a#2"]);
  stage.fail("n.a", "Again", 2);
  assert.deepEqual(stage.actions, [{ kind: "timer", key: "wait n.a#3", ms: 4_000 }]);
  stage.tell({ type: "timer", key: "wait n.a#3" });
  assert.deepEqual(stage.start(), ["n.a#3"]);
  stage.fail("n.a", "The last", 3);
  assert.match(stage.exit.error?.message ?? "", /The last/);
});

Deno.test("a pause holds no place of those that may be at work", () => {
  const stage = new Stage(
    simple("a", ", retry: { attempts: 2 }") + simple("b"),
    { head: "max_parallel: 1" },
  );
  assert.deepEqual(stage.start(), ["n.a#1"]);
  stage.fail("n.a");
  assert.deepEqual(stage.start(), ["n.b#1"]);
});

Deno.test("an answer in JSON that fits is the node's output, in a fence too", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: a, output: { type: object, properties: { n: { type: number } } } }
  b: { agent: x, intent: "\${{ nodes.a.output.n }}", depends_on: [a] }\n`,
  );
  assert.match(stage.intentOf("n.a"), /^a\n\n.*must be JSON alone.*\n\{"type":"object"/);
  stage.start();
  stage.ok("n.a", '```json\n{ "n": 5 }\n```');
  assert.equal(stage.intentOf("n.b"), "5");
});

Deno.test("an answer that doesn't fit is asked for again with what is wrong, and only so often", () => {
  const stage = new Stage("  a: { agent: x, intent: a, output: { type: object } }\n");
  stage.start();
  stage.ok("n.a", "Here you are");
  assert.deepEqual(stage.start(), ["n.a#2"]);
  assert.match(
    stage.intentOf("n.a"),
    /^a\n\n.*it is not JSON\. Do not do the work again.*\nHere you are\n\n/,
  );
  stage.ok("n.a", '{"n":"x"}', 2);
  assert.match(stage.intentOf("n.a"), /\/n must be number/);
  assert.deepEqual(stage.start(), ["n.a#3"]);
  stage.ok("n.a", "[]", 3);
  assert.match(
    stage.exit.error?.message ?? "",
    /doesn't fit the schema of "output", asked 3 times/,
  );
});

Deno.test("for_each goes over a structured result, and over JSON text", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: a }
  b: { agent: x, intent: "\${{ one.name }}", depends_on: a, for_each: "\${{ nodes.a.result }}", as: one }
  c: { agent: x, intent: "\${{ nodes.b.result[1] }} of \${{ nodes.b.result }}", depends_on: b }\n`,
  );
  stage.start();
  stage.ok("n.a", '[{"name":"p"},{"name":"q"}]');
  assert.deepEqual(stage.start(), ["n.b.0#1", "n.b.1#1"]);
  assert.equal(stage.intentOf("n.b.1"), "q");
  stage.ok("n.b.1", "Q");
  assert.deepEqual(stage.start(), []);
  stage.ok("n.b.0", "P");
  assert.equal(stage.intentOf("n.c"), 'Q of ["P","Q"]');
});

Deno.test("a list that is none, or nothing to work on, or too long, is told or done at once", () => {
  const over = (answer: string) => {
    const stage = new Stage(
      `  a: { agent: x, intent: a }
  b: { agent: x, intent: "\${{ item }}", depends_on: a, for_each: "\${{ nodes.a.result }}" }
`,
    );
    stage.start();
    stage.ok("n.a", answer);
    stage.start();
    return stage;
  };
  assert.match(over("no list").exit.error?.message ?? "", /needs a list/);
  assert.equal(over("[]").exit.status, "completed");
  const many = JSON.stringify(Array.from({ length: 1001 }, () => 1));
  assert.match(over(many).exit.error?.message ?? "", /1000 items at most, not 1001/);
});

Deno.test("an item that fails stops the others unless they are to go on", () => {
  const of = (more: string) => {
    const stage = new Stage(
      `  a: { agent: x, intent: "\${{ item }}", for_each: [1, 2, 3]${more} }\n${
        simple("b", after("a"))
      }${simple("c")}`,
      { head: "max_parallel: 2" },
    );
    stage.start();
    stage.fail("n.a.0");
    return stage;
  };
  assert.deepEqual(of("").keys, ["n.a.1#1"]);
  const stage = of(", on_failure: continue");
  stage.finish();
  assert.deepEqual(stage.starts, ["n.a.0#1", "n.a.1#1", "n.a.2#1", "n.c#1"]);
  assert.match(
    stage.exit.result,
    /^n\.c done\n\nNot done:\n- a failed: item 0: No luck\n- b was skipped/,
  );
});

Deno.test("when: a node is skipped, with all that waits for it alone; of two branches one leads on", () => {
  const stage = new Stage(
    simple("a") + simple("left", `${after("a")}, when: nodes.a.result == 'left'`) +
      simple("right", `${after("a")}, when: nodes.a.result != 'left'`) +
      simple("more", after("left")) +
      `  join: { agent: x, intent: "[\${{ nodes.left.result }}][\${{ nodes.right.result }}][\${{ nodes.left.status }}]", depends_on: [left, right] }\n`,
  );
  stage.start();
  stage.ok("n.a", "right");
  assert.deepEqual(stage.start(), ["n.right#1"]);
  stage.ok("n.right", "R");
  assert.equal(stage.intentOf("n.join"), "[][R][skipped]");
  stage.finish();
  assert.deepEqual(stage.starts, ["n.a#1", "n.right#1", "n.join#1"]);
  assert.equal(stage.exit.result, "n.join done");
});

Deno.test("a condition that can't be told fails its node", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: a, output: { type: object } }
  b: { agent: x, intent: b, depends_on: [a], when: nodes.a.output < 3 }\n`,
  );
  stage.start();
  stage.ok("n.a", '{"n":1}');
  stage.start();
  assert.match(stage.exit.error?.message ?? "", /Node "b" failed: .*"<" compares two numbers or/);
});

Deno.test("ended: a node begins whatever has become of what it waits for", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: a, on_failure: continue }
  b: { agent: x, intent: "[\${{ nodes.a.status }}][\${{ nodes.a.result or 'none' }}]", depends_on: { a: ended } }
  c: { agent: x, intent: c, depends_on: { a: completed } }\n`,
  );
  stage.start();
  stage.fail("n.a");
  assert.equal(stage.intentOf("n.b"), "[failed][none]");
  stage.finish();
  assert.deepEqual(stage.starts, ["n.a#1", "n.b#1"]);
  assert.equal(stage.exit.status, "completed");
});

Deno.test("a value that isn't there fails the node, in the journal as everywhere else", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: a, output: { type: object } }
  b: { agent: x, intent: "\${{ nodes.a.output.m }}", depends_on: a, retry: { attempts: 3 } }\n`,
  );
  stage.start();
  stage.ok("n.a", '{"n":1}');
  stage.start();
  assert.match(
    stage.exit.error?.message ?? "",
    /Node "b" failed: \[INVALID\] nodes\.a\.output\.m isn't there/,
  );
});

Deno.test("a failed workflow that is taken up again tries what had failed, and keeps what was done", () => {
  const stage = new Stage(
    simple("a") + simple("b", `${after("a")}, retry: { attempts: 2 }`) + simple("c", after("b")),
  );
  stage.start();
  stage.ok("n.a", "A");
  stage.start();
  stage.fail("n.b");
  stage.tell({ type: "timer", key: "wait n.b#2" });
  stage.start();
  stage.fail("n.b", "x", 2);
  assert.equal(stage.exit.status, "failed");
  stage.resume("failed");
  assert.deepEqual(stage.start(), ["n.b#3"]);
  stage.fail("n.b", "x", 3);
  assert.deepEqual(stage.keys, ["wait n.b#4"]);
  stage.tell({ type: "timer", key: "wait n.b#4" });
  stage.start();
  stage.ok("n.b", "B", 4);
  stage.finish();
  assert.equal(stage.exit.status, "completed");
  assert.equal(stage.starts.filter((key) => key.startsWith("n.a")).length, 1);
});

Deno.test("a child that failed or was killed is taken up again with the whole run, and not by a repeat within it", () => {
  const stage = new Stage(simple("a", ", retry: { attempts: 2 }"));
  const ended = (attempt: number, pid?: number) => {
    const end = { status: "failed" as const, totals: { ...TOTALS, turns: 3 } };
    const who = { call: "n.a", run_id: `child-${attempt}`, ...(pid === undefined ? {} : { pid }) };
    stage.tell({ type: "child.exited", ...who, ...end });
    stage.fail("n.a", "No luck", attempt);
  };
  const given = () => stage.calls[0]?.continues;
  stage.start();
  ended(1, 11);
  stage.tell({ type: "timer", key: "wait n.a#2" });
  assert.equal(given(), undefined, "a repeat begins anew");
  stage.start();
  ended(2, 12);
  stage.resume("failed");
  assert.equal(given(), true);
  stage.start();
  // Taken up and ended again; a fork has no pid of it, and so no right to it.
  ended(3);
  stage.resume("failed");
  assert.equal(given(), undefined);
});

Deno.test("a child of which nothing is left is made anew the next time, one that wasn't reached is not", () => {
  const stage = new Stage(simple("a"));
  const answer = (attempt: number, code: string) => {
    const error = { code, message: "x" };
    const result = { outcome: "error" as const, content: [], duration_ms: 1, error };
    stage.tell({ type: "call.result", call: "n.a", attempt, ...result });
    stage.resume("failed");
  };
  stage.start();
  stage.tell({
    ...{ type: "child.exited", call: "n.a", run_id: "c", pid: 7, status: "killed" },
    totals: { ...TOTALS, tool_calls: 1 },
  });
  stage.fail("n.a");
  stage.resume("killed");
  stage.start();
  answer(2, "CANCELLED");
  assert.equal(stage.calls[0]?.continues, true);
  stage.start();
  answer(3, "NOT_FOUND");
  assert.equal(stage.calls[0]?.continues, undefined);
});

Deno.test("a completed workflow with a new intent does everything anew, each call under a new attempt", () => {
  const stage = new Stage(
    `  a: { agent: x, intent: "\${{ intent }}", when: intent == 'one' or intent == 'two' }\n`,
    { intent: "one" },
  );
  stage.finish();
  stage.resume("completed", "two");
  assert.equal(stage.intentOf("n.a"), "two");
  assert.deepEqual(stage.start(), ["n.a#2"]);
  stage.ok("n.a", "second", 2);
  assert.equal(stage.exit.result, "second");
  stage.resume("completed", "three");
  assert.deepEqual([stage.start(), stage.exit.result], [[], ""]);
});

Deno.test("what a fork has of a node stays, whatever the node before it comes to now", () => {
  const stage = new Stage(
    simple("a") + simple("b", `${after("a")}, when: nodes.a.result == 'old'`),
  );
  stage.ok("n.b", "B");
  assert.deepEqual(stage.start(), ["n.a#1"]);
  stage.ok("n.a", "new");
  assert.deepEqual([stage.start(), stage.exit.result], [[], "B"]);
});

Deno.test("what was never sent because of a stop goes out again under a new attempt", () => {
  const stage = new Stage(simple("a"));
  stage.start();
  stage.tell({ type: "call.settled", call: "n.a", attempt: 1, how: "retry", by: "policy" });
  assert.deepEqual(stage.start(), ["n.a#2"]);
});

Deno.test("a call of which it is not to be known what became fails its node", () => {
  const stage = new Stage(simple("a", ", retry: { attempts: 3 }"));
  stage.start();
  stage.tell({ type: "call.settled", call: "n.a", attempt: 1, how: "fail", by: "user" });
  assert.match(stage.exit.error?.message ?? "", /UNKNOWN_OUTCOME/);
});

Deno.test("a workflow below is given its parameters, a node its model", () => {
  const stage = new Stage(
    `  a: { workflow: sub, intent: a, with: { n: 1, t: "\${{ intent }}" } }\n  b: { agent: x, model: small, intent: b }\n`,
    { intent: "I" },
  );
  assert.deepEqual(stage.calls.map(({ input }) => input), [
    { intent: "a", parameters: { n: "1", t: "I" } },
    { intent: "b", model: "small" },
  ]);
});

Deno.test("several last nodes are told under their names", () => {
  const stage = new Stage(simple("a") + simple("b"));
  stage.finish();
  assert.equal(stage.exit.result, "## a\n\nn.a done\n\n## b\n\nn.b done");
});
