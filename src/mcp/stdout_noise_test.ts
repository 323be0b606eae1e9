import assert from "node:assert/strict";
import { FaultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { VirtualClock } from "../../tests/doubles/virtual_clock.ts";
import { StderrLog } from "./stderr_log.ts";
import {
  LINE_BYTES,
  NOISE_BYTES_MAX,
  NOISE_BYTES_PER_SECOND,
  StdoutNoise,
} from "./stdout_noise.ts";

const PATH = "/run/s.log";
const bytes = (text: string) => new TextEncoder().encode(text);

function stage() {
  const disk = new FaultyDisk();
  const clock = new VirtualClock();
  let redactions = 0;
  const redact = (text: string) => {
    redactions += 1;
    return text.replaceAll("s3cr3t", "***");
  };
  const log = new StderrLog({ storage: disk, path: PATH, redact });
  return {
    clock,
    noise: new StdoutNoise(clock, log),
    redactions: () => redactions,
    content: async () => new TextDecoder().decode(await disk.read(PATH)),
  };
}

Deno.test("lines go to the log in order and redacted, and the first one is kept", async () => {
  const { noise, content } = stage();
  assert.equal(await noise.flush(), false);
  for (const line of ["", "  \r", "key s3cr3t", "two"]) noise.take(bytes(line));
  assert.equal(noise.first, undefined);
  assert.equal(await noise.flush(), true);
  noise.take(bytes("three"));
  assert.equal(await noise.flush(), false, "the first one has been told");
  await noise.close();
  assert.equal(noise.first, "key ***");
  assert.equal(await content(), "[stdout] key ***\n[stdout] two\n[stdout] three\n");
});

Deno.test("[B43] a flood of lines is counted, not logged, and one line says how many", async () => {
  const { noise, content, redactions } = stage();
  const line = bytes("y");
  for (let count = 0; count < 1_000_000; count += 1) {
    assert.equal(noise.take(line), undefined);
    if (count % 10_000 === 0) noise.messageCame();
  }
  await noise.close();
  const lines = (await content()).trimEnd().split("\n");
  assert.ok(lines.length > 100 && lines.length < 10_000, String(lines.length));
  assert.equal(redactions(), lines.length, "what isn't logged isn't redacted");
  const leftOut = 1_000_000 - (lines.length - 1);
  assert.equal(
    lines.at(-1),
    `[rnix] ${leftOut} more lines (${leftOut} bytes) on stdout that are no MCP messages were left out`,
  );
});

Deno.test("a long line is cut in the log, with no half of a secret at the cut", async () => {
  const { noise, content } = stage();
  noise.take(bytes("x".repeat(64 * 1024 - 12) + "s3cr3t".repeat(2_000)));
  await noise.close();
  const text = await content();
  assert.ok(text.length < 65 * 1024 && text.endsWith("***\n"), text.slice(-20));
});

Deno.test("so much output without a message ends the connection; messages and time make up for it", async () => {
  const { noise, clock } = stage();
  const half = new Uint8Array(NOISE_BYTES_MAX / 2 - LINE_BYTES).fill(0x20);
  const part = new Uint8Array(NOISE_BYTES_PER_SECOND - LINE_BYTES).fill(0x20);
  assert.equal(noise.take(half), undefined);
  noise.messageCame();
  assert.equal(noise.take(half), undefined);
  assert.equal(noise.take(half), undefined);
  await clock.advance(1_000);
  assert.equal(noise.take(part), undefined);
  assert.equal(
    noise.take(part),
    `it flooded its stdout: 4 lines (${
      NOISE_BYTES_MAX + 2 * NOISE_BYTES_PER_SECOND - 4 * LINE_BYTES + 4
    } bytes) without one MCP message`,
  );
});
