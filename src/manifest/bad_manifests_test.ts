/** Twelve kinds of bad manifests, from the file on disk to the words a person reads. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { disk } from "../base/disk.ts";
import { formatError, SysError } from "../base/errors.ts";
import { expandServers } from "./expand.ts";
import { loadAgentFile } from "./load_agent.ts";
import { problemsOf } from "./problems.ts";

const GOOD = `name: reviewer
instructions: You review.
models: { provider: scripted, script: script.yaml }
`;

/** Loads and expands a manifest of this content; gives what would be printed, and the exit code. */
async function told(content: string | Uint8Array | undefined): Promise<string[]> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(join(folder, "script.yaml"), "turns: [{ text: done }]\n");
    const path = join(folder, "agent.yaml");
    if (typeof content === "string") await Deno.writeTextFile(path, content);
    else if (content !== undefined) await Deno.writeFile(path, content);
    const { manifest } = await loadAgentFile(disk, path, { shown: "agent.yaml" });
    expandServers(manifest.servers ?? [], {
      clientEnv: {},
      manifestFolder: folder,
      runFolder: folder,
    });
    return ["fine"];
  } catch (thrown) {
    if (!(thrown instanceof SysError)) throw thrown;
    assert.doesNotMatch(formatError(thrown), /^\s+at /m, "no stack trace");
    return [`exit ${thrown.exitCode}`, ...formatError(thrown).split("\n")];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const server = (lines: string) => `${GOOD}mcp:\n  servers:\n    github:\n${lines}`;

const bytes = (...parts: (string | number)[]) =>
  Uint8Array.from(
    parts.flatMap((part) =>
      typeof part === "number" ? [part] : [...new TextEncoder().encode(part)]
    ),
  );

Deno.test("[A7] the good one loads", async () => {
  assert.deepEqual(await told(GOOD), ["fine"]);
});

const CASES: { name: string; content: string | Uint8Array | undefined; expected: string[] }[] = [
  {
    name: "a typo in a key",
    content: server("      comand: npx\n"),
    expected: [
      "exit 2",
      '[INVALID] agent.yaml:7:7: Unknown key "comand" in mcp.servers.github; did you mean `command`?',
    ],
  },
  {
    name: "a wrong type",
    content: server("      command: npx\n      args: -y\n"),
    expected: ["exit 2", '[INVALID] agent.yaml:8:13: Expected a list, got "-y"'],
  },
  {
    name: "unset variables in args and env",
    content: server('      command: npx\n      args: ["${A}"]\n      env: { T: "${B}" }\n'),
    expected: [
      "exit 3",
      '[INVALID] Mount: github (Variables "A" (mcp.servers.github.args[0]), ' +
      '"B" (mcp.servers.github.env.T) are not set)',
      "hint: export A=… B=…, or give a default: ${A:-…}",
    ],
  },
  {
    name: "a duplicate key",
    content: `${GOOD}budget: { turns: 3 }\nbudget: { turns: 4 }\n`,
    expected: ["exit 2", '[INVALID] agent.yaml:5:1: Duplicate key "budget": line 4 has it already'],
  },
  {
    name: "an alias bomb",
    content: `${GOOD}a: &a [x,x,x,x,x,x,x,x,x]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]
e: [*d,*d,*d,*d,*d,*d,*d,*d,*d]
`,
    expected: [
      "exit 2",
      "[INVALID] agent.yaml:5:8: Aliases multiply beyond what is reasonable; write the values out",
    ],
  },
  {
    name: "an empty file",
    content: "",
    expected: [
      "exit 2",
      "[INVALID] agent.yaml:1:1: The file is empty; a manifest needs name, instructions and models",
    ],
  },
  {
    name: "a binary file",
    content: bytes("name: x\n", 0x7f, "ELF", 0, 1),
    expected: ["exit 2", "[INVALID] agent.yaml:2:5: This is a binary file (it has NUL bytes)"],
  },
  {
    name: "a file that isn't UTF-8",
    content: bytes("name: x\ndescription: caf", 0xe9, "\n"),
    expected: [
      "exit 2",
      "[INVALID] agent.yaml:2:1: This is not UTF-8; save it in that encoding",
    ],
  },
  {
    name: "a missing file",
    content: undefined,
    expected: ["exit 2", '[NOT_FOUND] No manifest at "agent.yaml"'],
  },
  {
    name: "an unknown provider",
    content: GOOD.replace("scripted,", "scriptd,"),
    expected: [
      "exit 2",
      '[INVALID] agent.yaml:3:21: Unknown provider "scriptd"; did you mean "scripted"?',
    ],
  },
  {
    name: "a bad name",
    content: GOOD.replace("reviewer", "The Reviewer"),
    expected: [
      "exit 2",
      '[INVALID] agent.yaml:1:7: Invalid name "The Reviewer": use lower-case letters, digits and -, ' +
      "at most 64, not beginning with -",
    ],
  },
  {
    name: "two mistakes at once",
    content: `${GOOD}on_unknown: aks\n${"mcp: { servers: { a: { command: x, timeout: 5 } } }"}\n`,
    expected: [
      "exit 2",
      "[INVALID] 2 mistakes",
      '  agent.yaml:4:13: Expected one of ask, retry, skip, fail, got "aks"; did you mean `ask`?',
      "  agent.yaml:5:45: Expected a duration such as 500ms, 30s, 10m or 1h30m, got 5",
    ],
  },
  {
    name: "a key that isn't built yet",
    content: `${GOOD}approval: { risk: high }\n`,
    expected: [
      "exit 2",
      '[INVALID] agent.yaml:4:1: "approval" is not built yet; remove it, and limit the tools with ' +
      "mcp.servers.<name>.tools.allow",
    ],
  },
];

for (const { name, content, expected } of CASES) {
  Deno.test(`[A7] ${name} is told with its place and what to do`, async () => {
    assert.deepEqual(await told(content), expected);
  });
}

Deno.test("[A7] the mistakes can be had as data too", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = join(folder, "agent.yaml");
    await Deno.writeTextFile(path, `${GOOD}nam: x\n`);
    const error = await loadAgentFile(disk, path, { shown: "a.yaml" }).catch((thrown) => thrown);
    assert.ok(error instanceof SysError);
    const expected = [
      {
        file: "a.yaml",
        line: 3,
        column: 39,
        message: 'No script at "script.yaml" (a path that starts from the manifest\'s folder)',
      },
      { file: "a.yaml", line: 4, column: 1, message: 'Unknown key "nam"; did you mean `name`?' },
    ];
    assert.deepEqual(problemsOf(error.with({ pid: 3 })), expected);
    assert.deepEqual(problemsOf(new Error("x")), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
