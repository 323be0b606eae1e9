import assert from "node:assert/strict";
import { SysError } from "../base/errors.ts";
import { errorText, failureOf, namingRun } from "./failure.ts";

Deno.test("what isn't a SysError becomes INTERNAL with exit code 1", () => {
  for (const thrown of [new TypeError("boom"), "boom"]) {
    const { error, exitCode } = failureOf(thrown);
    assert.deepEqual(error, { code: "INTERNAL", message: "boom" });
    assert.equal(exitCode, 1);
  }
});

Deno.test("an error keeps its facts and its exit code, and gives its stacks to those who ask", () => {
  const thrown = new SysError("TIMEOUT", "no answer in 30s", {
    syscall: "Mount",
    device: "/mnt/mcp/1-files",
    pid: 1,
    hint: "raise startup_timeout",
    exitCode: 3,
    cause: new Error("socket closed"),
  });
  const { error, exitCode, stack } = failureOf(thrown);
  assert.deepEqual(error, {
    code: "TIMEOUT",
    message: "no answer in 30s",
    hint: "raise startup_timeout",
    syscall: "Mount",
    device: "/mnt/mcp/1-files",
    pid: 1,
  });
  assert.equal(exitCode, 3);
  assert.match(stack, /no answer in 30s[^]*caused by Error: socket closed/);
});

Deno.test("printed errors can't command the terminal, and an unknown code is INTERNAL", () => {
  assert.equal(
    errorText({ code: "NEWCODE", message: "a\x1b[2J", hint: "b\x07" }),
    "[INTERNAL] a\\x1b[2J\nhint: b\\x07",
  );
});

Deno.test("a hint names the run in every command it shows", () => {
  const named = namingRun(
    { code: "INVALID", message: "m", hint: "rnix resume RUN, or rnix wait RUN; RUNNING stays" },
    "01990000-0000-7000-8000-00000f3a9c2e",
  );
  assert.equal(named.hint, "rnix resume 0f3a9c2e, or rnix wait 0f3a9c2e; RUNNING stays");
  const without = { code: "INVALID", message: "m" };
  assert.equal(namingRun(without, "x"), without);
});

Deno.test("people get short names of runs, in texts and as the device; paths and other ids stay", () => {
  const id = "01990000-0000-7000-8000-00000f3a9c2e";
  const body = {
    code: "INVALID",
    message: `Run "${id}" is held by process 7, order ${id} too`,
    syscall: "Lock",
    device: `/state/runs/${id}/lock`,
    hint: `"rnix journal verify ${id}" lists it`,
  };
  assert.equal(
    errorText(body),
    `[INVALID] Lock: /state/runs/${id}/lock (Run "0f3a9c2e" is held by process 7, order ${id} too)
hint: "rnix journal verify 0f3a9c2e" lists it`,
  );
  const device = {
    code: "INVALID",
    message: "The run has completed",
    syscall: "Resume",
    device: id,
  };
  assert.equal(errorText(device), "[INVALID] Resume: run 0f3a9c2e (The run has completed)");
});

Deno.test("hints begin alike whichever part gave them, and names keep their letters", () => {
  const shown = (hint: string) =>
    errorText({ code: "INVALID", message: "It can't be", hint }).split("\n")[1];
  assert.equal(shown("Try again"), "hint: try again");
  assert.equal(shown("A run has one owner"), "hint: a run has one owner");
  assert.equal(shown("Known: a, b"), "hint: known: a, b");
  assert.equal(shown("HTTP_PROXY says where"), "hint: HTTP_PROXY says where");
  assert.equal(shown("rnix ps -a lists them"), "hint: rnix ps -a lists them");
});
