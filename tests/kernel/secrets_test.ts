/** Secrets in errors: whatever a server, a model or rnix says of them, the journal, the model and the report have none of it. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import type { DeviceOutcome } from "../../src/vfs/device.ts";
import { KernelStage, RUNS_FOLDER, ServerDouble } from "./kernel_stage.ts";
import type { StageOptions } from "./kernel_stage.ts";

const SECRET = "s3cret/va+lue-x";
const FORMS = [SECRET, encodeURIComponent(SECRET), btoa(SECRET)];
const TEXT = `no ${FORMS.join(" or ")}`;

const failing = () => new SysError("DRIVER", TEXT, { hint: `try ${SECRET}` });

function assertNoSecret(what: string, text: string): void {
  for (const form of FORMS) assert.ok(!text.includes(form), `${what} holds ${form}: ${text}`);
}

/** Runs to the end and looks into everything that is left; the journal must tell of `[redacted]`. */
async function runAndLook(options: StageOptions): Promise<KernelStage> {
  const stage = new KernelStage({ ...options, secrets: [SECRET] });
  const { end, runId } = await stage.run();
  const journal = await stage.disk.read(`${RUNS_FOLDER}/${runId}/journal.jsonl`);
  const text = new TextDecoder().decode(journal);
  assertNoSecret("the journal", text);
  assert.ok(text.includes("[redacted]"), "the error is told");
  assertNoSecret("the end", JSON.stringify(end));
  for (const { prompt } of stage.model.asked) assertNoSecret("a prompt", JSON.stringify(prompt));
  return stage;
}

Deno.test("a mount that fails is told without secrets, required or not, and to the model too", async () => {
  for (const required of [true, false]) {
    await runAndLook({
      servers: [new ServerDouble({ required, fails: failing() })],
      unavailable: [{ server: "other", required: false, error: failing() }],
      replies: ["done"],
    });
  }
});

const OUTCOMES: { [name: string]: () => DeviceOutcome } = {
  "that is never sent": () => ({ kind: "not-sent", error: failing() }),
  "whose outcome is unknown": () => ({
    kind: "unknown",
    cause: "disconnected",
    error: failing(),
    late: Promise.resolve(undefined),
  }),
  "whose device throws": () => {
    throw new Error(TEXT);
  },
  "with a warning": () => ({ kind: "answer", isError: false, content: [], warnings: [TEXT] }),
};

for (const [name, does] of Object.entries(OUTCOMES)) {
  Deno.test(`a call ${name} leaves no secret`, async () => {
    await runAndLook({
      servers: [new ServerDouble({ tools: { go: { does } } })],
      replies: [[{ tool: "world__go" }], "done"],
      onUnknown: "skip",
    });
  });
}

Deno.test("a model that fails is told without secrets: refused, down, thrown, replaced by another", async () => {
  const refused = { error: failing(), retryable: false };
  const down = Array.from({ length: 4 }, () => ({ error: failing(), retryable: true }));
  await runAndLook({ replies: [refused] });
  await runAndLook({ replies: down });
  await runAndLook({ replies: [{ throws: new Error(TEXT) }] });
  await runAndLook({ replies: down, fallback: { replies: ["done"] } });
  await runAndLook({ replies: down, fallback: { replies: [refused] } });
});

Deno.test("a preview is redacted before it is cut", async () => {
  const text = `${"x".repeat(195)}${SECRET}`;
  const does = (): DeviceOutcome => ({
    kind: "answer",
    isError: false,
    content: [{ type: "text", text }],
  });
  const stage = new KernelStage({
    secrets: [SECRET],
    servers: [new ServerDouble({ tools: { go: { does } } })],
    replies: [[{ tool: "world__go" }], "done"],
  });
  await stage.run();
  const [finished] = stage.eventsOf("call.finished");
  assert.equal(finished?.preview, `${"x".repeat(195)}[reda…`);
});
