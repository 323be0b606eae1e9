import assert from "node:assert/strict";
import { SysError } from "../../base/errors.ts";
import { parseScript } from "./script.ts";

function problemsOf(text: string): string[] {
  try {
    parseScript("s.yaml", text);
  } catch (thrown) {
    assert.ok(thrown instanceof SysError);
    assert.equal(thrown.code, "INVALID");
    assert.equal(thrown.exitCode, 2);
    return thrown.message.split("\n").filter((line) => line.includes("s.yaml:")).map((line) =>
      line.trim()
    );
  }
  return [];
}

Deno.test("a whole script is read into turns with their units and places", () => {
  const script = parseScript(
    "s.yaml",
    `
stream: { size: 4, every: 20ms }
turns:
  - &look { id: look, text: hi, delay: 1m30s, calls: [{ tool: a, input: [1, { b: null }] }] }
  - { text: again, stream: { size: 1 } }
  - { repeat: 2, turns: [{ text: x }, { text: y }] }
final: bye
`,
  );
  assert.deepEqual(script, {
    name: "s.yaml",
    stream: { size: 4, everyMs: 20 },
    final: "bye",
    spans: [
      {
        repeat: 1,
        turns: [{
          id: "look",
          text: "hi",
          delayMs: 90_000,
          calls: [{ tool: "a", input: [1, { b: null }], offered: true, at: "4:55" }],
          at: "4:11",
        }],
      },
      {
        repeat: 1,
        turns: [{
          text: "again",
          delayMs: 0,
          calls: [],
          stream: { size: 1, everyMs: 0 },
          at: "5:5",
        }],
      },
      {
        repeat: 2,
        turns: [
          { text: "x", delayMs: 0, calls: [], at: "6:26" },
          { text: "y", delayMs: 0, calls: [], at: "6:39" },
        ],
      },
    ],
  });
});

Deno.test("all mistakes of a script are told at once, in order, with line and column", () => {
  assert.deepEqual(
    problemsOf(`turn: []
turns:
  - text: 5
  - delay: soon
    text: a
  - repeat: 0
    text: "\${{ reslts.t1 }}"
  - calls:
      - inputs: {}
      - { tool: a, input: { x: "\${{ intent" } }
      - { tool: a, input: {}, arguments: "" }
  - {}
  - text: "\${{ results.gone.0.text }}"
`),
    [
      's.yaml:1:1: Unknown key "turn" in a script: did you mean "turns"?',
      's.yaml:3:11: "text" must be text, not 5',
      's.yaml:4:12: "delay" must be a duration such as 500ms, 30s, 10m or 1h30m, not "soon"',
      's.yaml:6:13: "repeat" must be a whole number from 1 to 1000000, not 0',
      "s.yaml:7:11: Can't read reference ${{ reslts.t1 }}: known are intent, index, round and results.TURN.CALL.text, .error, .structured.PATH, .content.PATH",
      's.yaml:9:9: Unknown key "inputs" in a call: did you mean "input"?',
      's.yaml:9:9: A call needs a "tool"',
      "s.yaml:10:27: ${{ intent isn't closed: add }}",
      's.yaml:11:9: Give either "input" or "arguments", not both',
      's.yaml:12:5: A turn needs "text", "calls" or both',
      's.yaml:13:11: ${{ results.gone.0.text }} refers to turn "gone", but no turn has this id',
    ],
  );
});

Deno.test("mistakes of the YAML itself, duplicate keys and alias bombs have their place", () => {
  assert.match(problemsOf("turns:\n  - text: a\n    text: b\n")[0] ?? "", /^s\.yaml:3:5: /);
  assert.match(problemsOf("turns: [\n")[0] ?? "", /^s\.yaml:\d+:\d+: /);
  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (let level = 0; level < 8; level++) {
    const [from, to] = ["abcdefghi"[level], "abcdefghi"[level + 1]];
    bomb.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(", ")}]`);
  }
  assert.ok(problemsOf(bomb.join("\n")).length > 0);
});

Deno.test("an empty script, a list, a missing and an empty turns list are refused with the reason", () => {
  assert.deepEqual(problemsOf(""), ["s.yaml:1:1: The script is empty"]);
  assert.match(problemsOf("- a")[0] ?? "", /Expected a script: a mapping/);
  assert.match(problemsOf("final: a")[0] ?? "", /Missing key "turns"/);
  assert.match(problemsOf("turns: []")[0] ?? "", /"turns" is empty/);
  assert.match(problemsOf("turns: {}")[0] ?? "", /"turns" must be a list/);
});

Deno.test("turn ids are unique and can't be mistaken for numbers", () => {
  assert.match(
    problemsOf("turns: [{ id: a, text: x }, { id: a, text: y }]")[0] ?? "",
    /"a" is given twice/,
  );
  for (const id of ["t1", "last", "A"]) {
    assert.match(problemsOf(`turns: [{ id: ${id}, text: x }]`)[0] ?? "", /Turn id "/);
  }
});

Deno.test("groups don't nest", () => {
  assert.match(
    problemsOf("turns: [{ repeat: 2, turns: [{ turns: [{ text: a }] }] }]").join(),
    /:32: Unknown key "turns" in a turn in a group/,
  );
});
