import assert from "node:assert/strict";
import { MemorySink } from "../../tests/doubles/fake_world.ts";
import type { RunEventBody } from "../../tests/doubles/fake_system.ts";
import type { Loudness } from "./command.ts";
import { Output } from "./output.ts";
import { styleFor } from "./style.ts";
import { Watcher } from "./watcher.ts";

/** What is shown of the events. */
async function shown(
  loudness: Loudness,
  events: RunEventBody[],
  colour = false,
  columns?: number,
): Promise<string> {
  const sink = new MemorySink(true);
  const output = new Output(sink);
  const watcher = new Watcher(output, styleFor(colour, {}), loudness, { columns: () => columns });
  for (const event of events) watcher.onEvent({ pid: 1, ts: 0, ...event });
  watcher.endLine();
  await output.flush();
  return sink.text;
}

const STARTED: RunEventBody = {
  type: "run.started",
  run_id: "01990000-0000-7000-8000-00000f3a9c2e",
  agent: "reviewer",
  intent: "look",
  model: "scripted/script",
};

function mounted(server: string, tools: number): RunEventBody {
  return { type: "mount.ready", server, tools, duration_ms: 820, protocol_version: "2025-11-25" };
}

function called(call: string, tool: string): RunEventBody {
  return { type: "call.started", call, attempt: 1, tool, input: { path: "a.txt" } };
}

function finished(call: string, preview: string, outcome: "ok" | "error" = "ok"): RunEventBody {
  return { type: "call.finished", call, attempt: 1, outcome, duration_ms: 12, preview };
}

const RUN: RunEventBody[] = [
  STARTED,
  { type: "mount.starting", server: "files" },
  mounted("files", 4),
  { type: "model.started", turn: 1 },
  { type: "model.delta", turn: 1, kind: "text", text: "I'll look" },
  { type: "model.delta", turn: 1, kind: "text", text: " at it." },
  { type: "model.finished", turn: 1, duration_ms: 300, input_tokens: 20, output_tokens: 5 },
  called("t1.0", "mcp__files__read"),
  finished("t1.0", "hello"),
  { type: "run.exited", status: "completed", exit_code: 0 },
];

Deno.test("a person sees mounts come up, text streamed, and calls with their time", async () => {
  assert.equal(
    await shown("full", RUN),
    `[kernel] spawning PID 1 (scripted/script)
[mount] files … 4 tools, 820ms
I'll look at it.
[reviewer/1] t1.0 mcp__files__read {"path":"a.txt"} → 12ms  hello
`,
  );
});

Deno.test("what happens at once is told line by line, each line whole", async () => {
  const text = await shown("full", [
    { type: "mount.starting", server: "a" },
    { type: "mount.starting", server: "b" },
    mounted("a", 1),
    mounted("b", 2),
    STARTED,
    called("t1.0", "one"),
    called("t1.1", "two"),
    finished("t1.1", ""),
    finished("t1.0", "no such file", "error"),
  ]);
  assert.equal(
    text,
    `[mount] a …
[mount] b …
[mount] a … 1 tool, 820ms
[mount] b … 2 tools, 820ms
[kernel] spawning PID 1 (scripted/script)
[reviewer/1] t1.0 one {"path":"a.txt"} →
[reviewer/1] t1.1 two {"path":"a.txt"} → 12ms
[reviewer/1] t1.0 one → error 12ms  no such file
`,
  );
});

Deno.test("news don't cut a streamed sentence in two; what matters does", async () => {
  const said = (text: string): RunEventBody => ({
    type: "model.delta",
    turn: 1,
    kind: "text",
    text,
  });
  const text = await shown("full", [
    { type: "mount.starting", server: "a" },
    said("I'll lo"),
    mounted("a", 1),
    said("ok.\nAnd th"),
    mounted("b", 1),
    said("en\n"),
    said("now "),
    mounted("c", 1),
    { type: "notice", message: "disk is nearly full" },
    said("go on"),
  ]);
  assert.equal(
    text,
    `[mount] a …
I'll look.
And then
[mount] a … 1 tool, 820ms
[mount] b … 1 tool, 820ms
now 
[mount] c … 1 tool, 820ms
notice: disk is nearly full
go on
`,
  );
});

Deno.test("while a person is asked nothing is told; it comes after the answer", async () => {
  const sink = new MemorySink(true);
  const output = new Output(sink);
  const watcher = new Watcher(output, styleFor(false, {}), "full");
  const event = (body: RunEventBody) => watcher.onEvent({ pid: 1, ts: 0, ...body });
  event(called("t1.0", "one"));
  watcher.take();
  event(finished("t1.0", "late"));
  event({ type: "notice", message: "matters" });
  event(called("t1.1", "two"));
  await output.flush();
  assert.equal(sink.text, '[agent] t1.0 one {"path":"a.txt"} →\n');
  watcher.giveBack();
  await output.flush();
  assert.equal(
    sink.text,
    `[agent] t1.0 one {"path":"a.txt"} →
[agent] t1.0 one → 12ms  late
notice: matters
[agent] t1.1 two {"path":"a.txt"} →
`,
  );
});

Deno.test("where nobody watches only what matters is told", async () => {
  assert.equal(await shown("essential", RUN), "");
  const matters: RunEventBody[] = [
    { type: "notice", message: "the last record was cut" },
    {
      type: "call.unknown",
      call: "t1.0",
      attempt: 1,
      tool: "append",
      effect: "write",
      cause: "timeout",
      message: "No answer (timeout 3s without progress, max_timeout 10m in all)\u001b[2J",
    },
    { type: "call.settled", call: "t1.0", how: "skip", by: "rule" },
    {
      type: "model.retrying",
      turn: 1,
      wait_ms: 2000,
      error: { code: "DEVICE_DISCONNECTED", message: "Provider is overloaded" },
    },
    { type: "context.compacting", turn: 2 },
    { type: "context.compacted", turn: 2, how: "summary", messages: 8 },
    {
      type: "context.compacted",
      turn: 3,
      how: "results",
      messages: 1,
      error: { code: "INVALID", message: "Too\nlong" },
    },
    { type: "mount.changed", server: "files", added: ["x"], removed: ["y"], changed: ["z"] },
  ];
  assert.equal(
    await shown("essential", matters),
    `notice: the last record was cut
[agent] t1.0 append (write): outcome unknown, timeout: No answer (timeout 3s without progress, max_timeout 10m in all)\\x1b[2J
[agent] t1.0 append: settled by skip (rule)
[agent] model: Provider is overloaded, again in 2.0s
[agent] context compacted: a summary in place of 8 earlier messages
[agent] context compacted: tool results in 1 earlier message left out (no summary: Too long)
[mount] files changed: +x -y ~z
`,
  );
  assert.equal(await shown("quiet", matters), "");
});

Deno.test("a failed mount is told with its error however quiet it is", async () => {
  const failed: RunEventBody = {
    type: "mount.failed",
    server: "files",
    required: true,
    error: {
      code: "DRIVER",
      message: "server exited with 1: no such module",
      pid: 1,
      syscall: "Mount",
      device: "/mnt/mcp/1-files",
      hint: "rnix mcp logs 1-files",
    },
  };
  assert.equal(
    await shown("quiet", [failed]),
    `[DRIVER] PID 1 Mount: /mnt/mcp/1-files (server exited with 1: no such module)
hint: rnix mcp logs 1-files
`,
  );
});

Deno.test("-v adds turns, thinking and progress", async () => {
  const text = await shown("verbose", [
    STARTED,
    mounted("files", 1),
    { type: "model.started", turn: 1 },
    { type: "model.delta", turn: 1, kind: "reasoning", text: "hm" },
    { type: "model.delta", turn: 1, kind: "text", text: "yes" },
    { type: "model.finished", turn: 1, duration_ms: 300, input_tokens: 20, output_tokens: 5 },
    called("t1.0", "one"),
    { type: "call.progress", call: "t1.0", message: "half" },
  ]);
  assert.equal(
    text,
    `[kernel] spawning PID 1 (scripted/script)
[kernel] run 01990000-0000-7000-8000-00000f3a9c2e
[mount] files … 1 tool, 820ms, MCP 2025-11-25
[reviewer/1] turn 1
hm
yes
[reviewer/1] turn 1: 25 tokens, 300ms
[reviewer/1] t1.0 one {"path":"a.txt"} →
[reviewer/1] t1.0: half
`,
  );
});

Deno.test("text of models and servers can't command the terminal", async () => {
  const evil = "\x1b[2J\x1b]0;owned\x07\r";
  const text = await shown("verbose", [
    { ...STARTED, agent: evil, model: evil },
    { type: "mount.starting", server: evil },
    { ...mounted(evil, 1), type: "mount.ready", protocol_version: evil } as RunEventBody,
    { type: "model.delta", turn: 1, kind: "text", text: evil },
    { type: "call.started", call: "t1.0", attempt: 2, tool: evil, input: { [evil]: evil } },
    { type: "call.progress", call: "t1.0", message: evil },
    finished("t1.0", evil),
    { type: "notice", message: evil },
  ]);
  // deno-lint-ignore no-control-regex
  assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(text), JSON.stringify(text));
});

Deno.test("colour comes only from us and ends with what it marks", async () => {
  const text = await shown("full", [STARTED], true);
  assert.equal(text, "\x1b[2m[kernel] spawning PID 1 (scripted/script)\x1b[22m\n");
});

Deno.test("long input and results are cut to a line", async () => {
  const text = await shown("full", [
    { ...called("t1.0", "one"), type: "call.started", input: "x".repeat(500) } as RunEventBody,
    finished("t1.0", "line\n".repeat(200)),
  ]);
  assert.equal(text.split("\n").length, 2);
  assert.ok(text.length < 260, String(text.length));
});

Deno.test("a line about a call fits the terminal, and keeps some of what it cuts", async () => {
  const long: RunEventBody = {
    type: "call.started",
    call: "t1.1",
    attempt: 1,
    tool: "mcp__files__read",
    input: { path: "x".repeat(200) },
  };
  const text = await shown("full", [STARTED, long, finished("t1.1", "y".repeat(200))], false, 80);
  const [, line = ""] = text.split("\n");
  assert.ok(line.length <= 80, line);
  assert.ok(line.includes("x… → 12ms  y"), line);
  const apart = await shown(
    "full",
    [STARTED, long, called("t1.2", "b"), finished("t1.1", "y".repeat(200))],
    false,
    80,
  );
  for (const each of apart.split("\n")) assert.ok(each.length <= 80, each);
  for (const columns of [48, 60, 80]) {
    const narrow = await shown(
      "full",
      [
        STARTED,
        { ...long, tool: `mcp__files__${"z".repeat(52)}` },
        finished("t1.1", "yyyy", "error"),
      ],
      false,
      columns,
    );
    for (const each of narrow.split("\n").slice(1)) assert.ok(each.length <= columns, each);
    assert.match(narrow, /mcp__\S*… → error 12ms/);
  }
});

Deno.test("what a resume settles before it has a pid is told under that pid", async () => {
  const settled: RunEventBody[] = [
    { type: "call.settled", call: "t1.1", tool: "mcp__ledger__pay", how: "retry", by: "user" },
    { ...STARTED, type: "run.resumed" },
  ];
  assert.equal(
    await shown("full", settled),
    `[kernel] resuming as PID 1 (scripted/script)
[reviewer/1] t1.1 mcp__ledger__pay: settled by retry (user)
`,
  );
  assert.equal(
    await shown("essential", [...settled.slice(0, 1), { type: "run.suspended", reason: "limit" }]),
    "[agent] t1.1 mcp__ledger__pay: settled by retry (user)\n",
  );
});

Deno.test("a fork says of which run it is one", async () => {
  const forked_from = "01990000-0000-7000-8000-0000beefcafe";
  assert.equal(
    await shown("essential", [{ ...STARTED, forked_from }]),
    "[kernel] PID 1 is a fork of run beefcafe\n",
  );
});
