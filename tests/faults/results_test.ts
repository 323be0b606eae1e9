/** Answers in every form: what the server said is what the model and the journal get, flags and kinds kept apart. */
import assert from "node:assert/strict";
import { isJsonObject, type Json } from "../../src/base/json.ts";
import { limitOutput } from "../../src/policy/output_limit.ts";
import type { DeviceOutcome } from "../../src/vfs/device.ts";
import { answerOf, textOf } from "../servers/mount_bench.ts";
import type { Fields } from "../servers/rpc_stdio.ts";
import type { Step } from "../servers/scripted_scenario.ts";
import { scene } from "./fault_scene.ts";

type Answer = Extract<DeviceOutcome, { kind: "answer" }>;

function asAnswer(outcome: DeviceOutcome): Answer {
  assert.ok(outcome.kind === "answer", JSON.stringify(outcome));
  return outcome;
}

/** A scene whose tool answers with `result`. */
function answering(
  name: string,
  result: Fields,
  work: (answer: Answer, read: string) => Promise<void> | void,
): void {
  scene(name, { on: { "tools/call": { result } } }, async ({ mounted, bench }) => {
    await mounted(async (mount) => {
      const answer = asAnswer(await bench.call(mount));
      const file = mount.open("tools/t");
      await file.write({}, {
        signal: new AbortController().signal,
        cancelGraceMs: 100,
        callId: "t2.0",
        idempotencyKey: "k",
      });
      await work(answer, new TextDecoder().decode(await file.read()));
    });
  });
}

const text = (words: string) => ({ type: "text", text: words });

answering("[D01] a failure that carries structured content is a failure, its text first", {
  isError: true,
  content: [text("no such account")],
  structuredContent: { code: 404 },
}, (answer) => {
  assert.equal(answer.isError, true);
  assert.deepEqual(answer.content, [text("no such account")]);
  assert.deepEqual(answer.structured, { code: 404 });
});

answering("[D03] an empty content with structured data is that data", {
  content: [],
  structuredContent: { total: 3 },
}, (answer, read) => {
  assert.equal(answer.isError, false);
  assert.deepEqual(answer.structured, { total: 3 });
  assert.equal(read, '{"total":3}');
});

answering("[D03] structured data without any content is that data", {
  structuredContent: { total: 3 },
}, (answer, read) => {
  assert.deepEqual(answer.structured, { total: 3 });
  assert.equal(read, '{"total":3}');
});

answering("an empty answer is an answer", { content: [] }, (answer, read) => {
  assert.equal(answer.isError, false);
  assert.deepEqual(answer.content, []);
  assert.equal(read, "(empty)");
});

answering("a result without content is an answer with a warning: the effect has happened", {}, (
  answer,
) => {
  assert.equal(answer.isError, false);
  assert.deepEqual(answer.warnings, ['Result of "t" has no content']);
});

const UNKNOWN_KINDS: Json[] = [
  { type: "hologram", data: "…", depth: 3 },
  { type: "resource_link", uri: "note://1", name: "one" },
  { type: "resource", resource: { uri: "note://2", text: "two" } },
  { type: "audio", data: "AAAA", mimeType: "audio/wav" },
  { no: "type" },
  "bare text",
];

answering("content of kinds that nobody knows stays as it came", {
  content: UNKNOWN_KINDS as Fields[],
}, (answer) => assert.deepEqual(answer.content, UNKNOWN_KINDS));

const IMAGE = "iVBORw0KGgo".padEnd(360_000, "A");

answering("[D05] an image stays an image, its copy in structured content is cut away", {
  content: [{ type: "image", data: IMAGE, mimeType: "image/png" }],
  structuredContent: { picture: IMAGE },
}, async (answer) => {
  assert.deepEqual(answer.content, [{ type: "image", data: IMAGE, mimeType: "image/png" }]);
  const { kept } = await limited(answer, 1_000);
  assert.deepEqual(kept.content, answer.content);
  assert.ok(!JSON.stringify(kept.structured ?? null).includes(IMAGE));
});

scene("[D09] [D11] a lone surrogate from the wire becomes U+FFFD, wherever it stands", {
  on: {
    "tools/call": {
      result: {
        content: [text("a\ud83d"), text("\udcffb")],
        structuredContent: { "k\ud800": "v\udfff" },
      },
      then: { error: { code: -32000, message: "bad \ud83d" } },
    },
  },
}, async ({ mounted, bench }) => {
  await mounted(async (mount) => {
    const answer = asAnswer(await bench.call(mount));
    assert.equal(textOf(answer.content), "a\ufffd\n\ufffdb");
    assert.deepEqual(answer.structured, { "k\ufffd": "v\ufffd" });
    const failed = asAnswer(await bench.call(mount));
    assert.ok(JSON.stringify(failed.content).isWellFormed());
    assert.match(textOf(failed.content), /bad \ufffd/);
  });
});

const EMOJI = [0, 1, 2, 3].map((padding) => "x".repeat(padding) + "😀".repeat(5_000));

scene("[D09] emoji at every offset of the cut stay whole", {
  on: {
    "tools/call": EMOJI.reduceRight<Step>((then, words) => ({ text: words, then }), {}),
  },
}, async ({ mounted, bench }) => {
  await mounted(async (mount) => {
    for (const words of EMOJI) {
      const answer = asAnswer(await bench.call(mount));
      assert.equal(textOf(answer.content), words);
      const { kept } = await limited(answer, 200);
      const shown = textOf(kept.content);
      assert.ok(shown.isWellFormed());
      assert.ok(shown.length < words.length / 2);
    }
  });
});

scene("[B41] [D09] 12 MB of text is cut to the limit on whole characters, the rest is kept", {
  on: { "tools/call": { text: "aé😀", textTimes: 1_500_000 } },
}, async ({ mounted, bench }) => {
  await mounted(async (mount) => {
    const whole = answerOf(await bench.call(mount));
    assert.equal(whole.length, 6_000_000);
    const { kept, wholes } = await limited({
      kind: "answer",
      isError: false,
      content: [text(whole)],
    }, 500);
    const shown = textOf(kept.content);
    assert.ok(shown.isWellFormed());
    assert.ok(shown.length < 10_000, `${shown.length} characters`);
    assert.deepEqual(wholes.map((each) => each === whole), [true]);
  });
});

scene("[D07] no arguments come as null or an empty text and leave as {}", {}, async ({
  mounted,
  bench,
  received,
}) => {
  await mounted(async (mount) => {
    for (const input of [null, "", {}]) {
      assert.equal(answerOf(await bench.call(mount, "t", input)), "called t");
    }
  });
  const sent = received().filter(({ method }) => method === "tools/call").map(({ params }) =>
    isJsonObject(params) ? params["arguments"] : undefined
  );
  assert.deepEqual(sent, [{}, {}, {}]);
});

/** An answer cut to a limit, and the whole texts that are kept of it. */
async function limited(answer: Answer, tokensMax: number) {
  const wholes: string[] = [];
  const kept = await limitOutput(answer.content, answer.structured, tokensMax, (whole) => {
    wholes.push(whole);
    return Promise.resolve({ sha256: "0".repeat(64), bytes: whole.length });
  });
  return { kept, wholes };
}
