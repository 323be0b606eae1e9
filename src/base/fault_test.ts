import assert from "node:assert/strict";
import { faultText } from "./fault.ts";

const CANARY = "s3cr3t-canary-in-a-message";

Deno.test("[C09] a fault is told by its kind and its places, without its message or its cause", () => {
  const message = `no ${CANARY}\n    at ${CANARY} (x.ts:1:1)`;
  const text = faultText(new TypeError(message, { cause: new Error(CANARY) }));
  assert.match(
    text,
    /^\[INTERNAL\] rnix ended by a fault of its own \(TypeError\)\n +at .*fault_test/,
  );
  assert.ok(!text.includes(CANARY), text);
  for (
    const thrown of [
      CANARY,
      { CANARY },
      undefined,
      Object.assign(new Error(CANARY), { stack: `x ${CANARY.slice(1)}` }),
    ]
  ) {
    assert.ok(!faultText(thrown).includes(CANARY.slice(1)), faultText(thrown));
  }
});

for (
  const fault of [
    "Promise.reject(new Error(CANARY))",
    "setTimeout(() => { throw new Error(CANARY); }, 0)",
  ]
) {
  Deno.test(`[C09] a program that dies of a fault says nothing of its message: ${fault.slice(0, 10)}`, async () => {
    const script = `
      import { watchFaults } from ${JSON.stringify(new URL("./fault.ts", import.meta.url).href)};
      watchFaults((text) => { console.error(text); Deno.exit(1); });
      const CANARY = "${CANARY.slice(0, 5)}" + "${CANARY.slice(5)}";
      ${fault};
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    `;
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--no-config",
        "--no-lock",
        "--no-check",
        "--allow-read",
        "data:application/typescript," + encodeURIComponent(script),
      ],
      stdin: "null",
    }).output();
    const text = new TextDecoder().decode(stderr);
    assert.equal(code, 1, text);
    assert.match(text, /ended by a fault of its own \(Error\)/);
    assert.ok(!text.includes(CANARY), text);
  });
}
