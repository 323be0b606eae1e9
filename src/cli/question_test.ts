import assert from "node:assert/strict";
import { MemorySink, MemorySource } from "../../tests/doubles/fake_world.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import type { TrustQuestion, UnknownCall, UnknownDecision } from "../base/operations.ts";
import { Input } from "./input.ts";
import { Output } from "./output.ts";
import { ANSWER_MS_MAX, Questioner } from "./question.ts";

const CALL: UnknownCall = {
  run_id: "01990000-0000-7000-8000-00000f3a9c2e",
  call: "t3.0",
  tool: "mcp__ledger__append",
  effect: "write",
  cause: "disconnected",
  message: "it exited with code 1",
  attempt: 1,
};

const PROJECT_AGENT: TrustQuestion = {
  subject: 'Agent "helper"',
  files: [{
    path: "/project/.rnix/agents/helper/agent.yaml",
    state: "changed",
    decides: "what runs",
    effects: ["starts npx -y some-server"],
  }, { path: "/project/AGENTS.md", state: "new", decides: "what it is told", effects: [] }],
};

const never = new AbortController().signal;

function asking(...typed: string[]) {
  const sink = new MemorySink(true);
  const output = new Output(sink);
  const clock = new VirtualClock();
  let begun = 0;
  let open = 0;
  const floor = {
    take: () => {
      begun += 1;
      open += 1;
    },
    giveBack: () => open -= 1,
  };
  const input = new Input(new MemorySource(typed.map((line) => `${line}\n`), true));
  const questioner = new Questioner(input, output, clock, floor);
  return { sink, output, clock, questioner, begun: () => begun, open: () => open };
}

async function decisionFor(...typed: string[]): Promise<UnknownDecision | undefined> {
  return await asking(...typed).questioner.decide(CALL, never);
}

Deno.test("the question shows call, tool, effect and cause, and what each answer means", async () => {
  const { questioner, sink, output, begun } = asking("r");
  assert.deepEqual(await questioner.decide(CALL, never), { how: "retry" });
  await output.flush();
  assert.equal(
    sink.text,
    `Outcome unknown: t3.0 mcp__ledger__append (write)
  cause: disconnected: it exited with code 1
  r  retry: send it again
  d  done: it did happen; "d JSON" gives its result
  s  skip: tell the model that the outcome is unknown
  f  fail: end the run
  (anything later: just press Enter)
decide [r/d/s/f]: `,
  );
  assert.equal(begun(), 1);
});

Deno.test("letters and words answer alike, and done may carry a result", async () => {
  assert.deepEqual(await decisionFor("retry"), { how: "retry" });
  assert.deepEqual(await decisionFor("s"), { how: "skip" });
  assert.deepEqual(await decisionFor("fail"), { how: "fail" });
  assert.deepEqual(await decisionFor("d"), { how: "done" });
  assert.deepEqual(await decisionFor('done {"id": 3}'), { how: "done", result: { id: 3 } });
});

Deno.test("no answer is no decision", async () => {
  assert.equal(await decisionFor(""), undefined);
  assert.equal(await asking().questioner.decide(CALL, AbortSignal.abort()), undefined);
});

Deno.test("nonsense is asked again, three times in all", async () => {
  assert.deepEqual(await decisionFor("what", "d {broken", "f"), { how: "fail" });
  assert.equal(await decisionFor("what", "r now", "s it", "r"), undefined);
});

Deno.test("a question ends at its limit", async () => {
  const { questioner, clock, sink, output } = asking();
  const answer = questioner.decide(CALL, never);
  await clock.advance(ANSWER_MS_MAX);
  assert.equal(await answer, undefined);
  await output.flush();
  assert.match(sink.text, /no answer in 10m00s: left undecided\n$/);
});

Deno.test("Ctrl-C takes a question back", async () => {
  const { questioner } = asking();
  const interrupt = new AbortController();
  const answer = questioner.decide(CALL, interrupt.signal);
  interrupt.abort();
  assert.equal(await answer, undefined);
});

Deno.test("of several questions each gets its own answer, in order", async () => {
  const { questioner, begun, open } = asking("r", "s", "f");
  const answers = ["t3.0", "t3.1", "t3.2"].map((call) =>
    questioner.decide({ ...CALL, call }, never)
  );
  assert.equal(begun(), 0, "nothing is asked before its turn");
  assert.deepEqual(await Promise.all(answers), [{ how: "retry" }, { how: "skip" }, {
    how: "fail",
  }]);
  assert.equal(begun(), 3);
  assert.equal(open(), 0, "the floor is given back");
});

Deno.test("[N10] trust is asked for once, with every file and what would be started; only a yes is a yes", async () => {
  const { questioner, sink, output } = asking("y");
  assert.equal(await questioner.confirmTrust(PROJECT_AGENT), true);
  await output.flush();
  assert.equal(
    sink.text,
    `Agent "helper" needs 2 files of this project that are not trusted as they are
  /project/.rnix/agents/helper/agent.yaml (changed): what runs
    starts npx -y some-server
  /project/AGENTS.md (new): what it is told
Use them, and trust them from now on? [y/N]: `,
  );
  assert.equal(await asking("yes").questioner.confirmTrust(PROJECT_AGENT), true);
  for (const typed of [["n"], [""], ["yup"]]) {
    assert.equal(await asking(...typed).questioner.confirmTrust(PROJECT_AGENT), false);
  }
});

Deno.test("a single file is asked for as one", async () => {
  const { questioner, sink, output } = asking("n");
  const question = { ...PROJECT_AGENT, files: PROJECT_AGENT.files.slice(1) };
  assert.equal(await questioner.confirmTrust(question), false);
  await output.flush();
  assert.match(sink.text, /^Agent "helper" needs a file of this project that is not trusted as it/);
  assert.match(sink.text, /\nUse it, and trust it from now on\? \[y\/N\]: $/);
});

Deno.test("giving up ends the open question and every later one, without a decision", async () => {
  const { questioner, open } = asking();
  const first = questioner.decide(CALL, never);
  const second = questioner.confirmTrust(PROJECT_AGENT);
  questioner.giveUp();
  assert.equal(await first, undefined);
  assert.equal(await second, false);
  assert.equal(await questioner.decide(CALL, never), undefined);
  assert.equal(open(), 0);
});
