import assert from "node:assert/strict";
import { patientClock } from "../../../tests/doubles/patient_clock.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { Redactor } from "../../base/redaction.ts";
import { isJsonObject, type JsonObject } from "../../base/json.ts";
import { bashTool } from "./bash_tool.ts";
import { KeptOutput } from "./output_tail.ts";

const started: number[] = [];
const ended: number[] = [];
const MARK = crypto.randomUUID();
const KEY = "sk-live-0123456789abcdef0123456789abcdef";
const PATH = "/usr/local/bin:/usr/bin:/bin";

async function bash(
  input: JsonObject,
  signal = new AbortController().signal,
  clock: Clock = patientClock,
): Promise<{ text: string; isError: boolean }> {
  const tool = bashTool({
    clock,
    cwd: Deno.realPathSync(Deno.env.get("TMPDIR") ?? "/tmp"),
    env: { PATH, GREETING: "hello" },
    secrets: new Redactor([KEY]),
    keeper: () =>
      Promise.resolve({
        mark: { RNIX_INSTANCE: MARK },
        groupStarted: (pgid) => started.push(pgid),
        groupEnded: (pgid) => ended.push(pgid),
      }),
  });
  const options = { signal, cancelGraceMs: 0, callId: "t1.0", idempotencyKey: "k" };
  const outcome = await tool.run(input, options);
  if (outcome.kind !== "answer") throw new Error("no answer");
  const [block] = outcome.content;
  const text = block !== undefined && isJsonObject(block) ? String(block["text"]) : "";
  return { text, isError: outcome.isError };
}

/** Whether it lives; a zombie that nobody reaps doesn't. */
async function alive(pid: number): Promise<boolean> {
  assert.ok(pid > 1);
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", 'cut -d")" -f2 "/proc/$1/stat" 2>/dev/null; true', "sh", String(pid)],
  }).output();
  const state = new TextDecoder().decode(stdout).trim().slice(0, 1);
  return state !== "" && state !== "Z";
}

Deno.test("a command gives its output and its exit code", async () => {
  assert.deepEqual(await bash({ command: "echo $GREETING; pwd >/dev/null" }), {
    text: "hello",
    isError: false,
  });
  assert.deepEqual(await bash({ command: "echo out; echo err >&2; exit 3" }), {
    text: "out\nerr\n(exit code 3)",
    isError: true,
  });
  assert.deepEqual(await bash({ command: "true" }), { text: "", isError: false });
});

Deno.test("it has the environment it is given and the mark, and nothing to read", async () => {
  const { text } = await bash({ command: "env | sort; cat" });
  assert.match(text, /^GREETING=hello$/m);
  assert.match(text, new RegExp(`^RNIX_INSTANCE=${MARK}-[0-9a-f]{12}$`, "m"));
  assert.ok(!text.includes("HOME="));
});

Deno.test("a command that takes too long is ended with all it started, and says so", async () => {
  const command = "sleep 600 & echo $!; echo begun; trap '' TERM; sleep 600";
  const { signal } = new AbortController();
  const { text, isError } = await bash({ command, timeout_ms: 3_000 }, signal, systemClock);
  assert.ok(isError);
  assert.match(text, /begun\n\(the command was ended: it took longer than 3s \(timeout_ms\)\)$/);
  assert.ok(!await alive(Number(text.split("\n")[0])));
});

Deno.test("[C05] what it leaves in the background ends with it", async () => {
  for (const command of ["sleep 600 &", "sleep 600 >/dev/null 2>&1 &", "setsid sleep 600 &"]) {
    const { text } = await bash({ command: `${command} echo $!` });
    assert.ok(!await alive(Number(text)), command);
  }
  const told = Deno.makeTempFileSync({ prefix: "rnix-bash-" });
  const inner = `setsid sh -c 'echo $$; echo up > ${told}; sleep 600' &`;
  const { text } = await bash({ command: `${inner} until [ -s ${told} ]; do sleep 0.05; done` });
  Deno.removeSync(told);
  assert.ok(!await alive(Number(text)));
  assert.equal(started.length, ended.length);
});

Deno.test("a cancelled command is ended and has a known outcome", async () => {
  const stop = new AbortController();
  const answer = bash({ command: "echo begun; sleep 600" }, stop.signal);
  while (started.length === ended.length) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 100));
  stop.abort();
  assert.match((await answer).text, /\(the command was ended: it was cancelled\)$/);
});

Deno.test("of much output the beginning and the end are kept", async () => {
  const { text } = await bash({ command: "seq 1 200000" });
  assert.ok(text.length < 101_000);
  assert.match(text, /^1\n2\n/);
  assert.match(text, /\n… \(\d+ characters left out\) …\n/);
  assert.match(text, /\n200000$/);
  const kept = new KeptOutput(9, new Redactor([]));
  kept.stream()(new TextEncoder().encode("😀".repeat(20)));
  assert.ok(kept.text().isWellFormed());
});

Deno.test("no half of a secret is left where output is cut", async () => {
  for (const before of [66_650, 66_660, 100_000]) {
    const after = before === 100_000 ? 33_310 : 80_000;
    const { text } = await bash({
      command: `head -c ${before} /dev/zero | tr '\\0' x; printf %s ${KEY.slice(0, 9)}; ` +
        `sleep 0.1; printf %s ${KEY.slice(9)}; head -c ${after} /dev/zero | tr '\\0' y`,
    });
    assert.match(text, /characters left out/);
    assert.ok(!/x[sk][-a-z0-9]/.test(text.replaceAll("x[redacted]", "")), String(before));
    assert.ok(!/[0-9a-f]y/.test(text), String(before));
  }
});

Deno.test("a character in two pieces survives what the other stream says between them", async () => {
  const command = "printf '\\303'; sleep 0.2; printf err >&2; sleep 0.2; printf '\\251\\n'";
  assert.equal((await bash({ command })).text, "err\u00e9");
});

Deno.test("a command that is too long for a shell is refused as such", async () => {
  await assert.rejects(
    bash({ command: `: ${"\u00e9".repeat(70_000)}` }),
    /A command of 140002 bytes/,
  );
});
