import assert from "node:assert/strict";
import { SysError } from "./errors.ts";
import { redactError } from "./redacted_error.ts";
import { Redactor } from "./redaction.ts";

const SECRET = "s3cret-value";
const redactor = new Redactor([SECRET]);

Deno.test("every text of an error is redacted, its cause left out, all else kept", () => {
  const error = new SysError("DRIVER", `no ${SECRET} here`, {
    hint: `try ${SECRET}`,
    syscall: "Mount",
    device: `/x/${SECRET}`,
    pid: 3,
    exitCode: 7,
    cause: new Error(SECRET),
  });
  const { code, message, hint, syscall, device, pid, exitCode, cause, stack } = redactError(
    error,
    redactor,
  );
  assert.deepEqual({ code, message, hint, syscall, device, pid, exitCode, cause }, {
    code: "DRIVER",
    message: "no [redacted] here",
    hint: "try [redacted]",
    syscall: "Mount",
    device: "/x/[redacted]",
    pid: 3,
    exitCode: 7,
    cause: undefined,
  });
  assert.ok(!stack?.includes(SECRET));
});

Deno.test("what isn't there stays away, and what was thrown otherwise becomes INTERNAL", () => {
  const { code, message, hint, device } = redactError(new TypeError(`bad ${SECRET}`), redactor);
  assert.deepEqual([code, message, hint, device], [
    "INTERNAL",
    "bad [redacted]",
    undefined,
    undefined,
  ]);
});

Deno.test("without secrets an error is left as it is", () => {
  const cause = new Error("why");
  const error = redactError(new SysError("DRIVER", "x", { cause }), new Redactor([]));
  assert.equal(error.cause, cause);
});
