/** What README.md says of files is what the program reads. */
import assert from "node:assert/strict";
import { parseScript } from "../src/llm/scripted/script.ts";
import { KNOWN_KEYS } from "../src/manifest/manifest_schema.ts";
import { parseManifest } from "../src/manifest/parse_manifest.ts";
import { formatProblem, Problems } from "../src/manifest/problems.ts";
import { WORKFLOW_KEYS } from "../src/manifest/workflow/workflow_schema.ts";

const readme = Deno.readTextFileSync(new URL("../README.md", import.meta.url));

/** The block of YAML that begins with `start`. */
function block(start: string): string {
  const from = readme.indexOf("```yaml\n" + start);
  assert.ok(from >= 0, start);
  return readme.slice(from + 8, readme.indexOf("\n```", from));
}

Deno.test("the README's manifest is a manifest, has every key there is, and tells the defaults", () => {
  const text = block("name: reviewer");
  const problems = new Problems();
  const { manifest } = parseManifest(
    text,
    { file: "README.md", instructionsBeside: undefined },
    problems,
  );
  assert.deepEqual(problems.list.map(formatProblem), []);
  for (const keys of Object.values(KNOWN_KEYS)) {
    for (const key of keys) assert.match(text, new RegExp(`(^|[ #])${key}:`, "m"), key);
  }
  const bare = new Problems();
  const server = "mcp: { servers: { files: { command: npx } } }";
  const short = parseManifest(
    `name: a\ninstructions: x\nmodels: { provider: scripted, script: s }\n${server}\n`,
    {
      file: "f",
      instructionsBeside: undefined,
    },
    bare,
  );
  const [told] = manifest?.servers ?? [];
  const [left] = short.manifest?.servers ?? [];
  assert.ok(told !== undefined && left !== undefined);
  const defaults = [
    "startupTimeoutMs",
    "timeoutMs",
    "maxTimeoutMs",
    "outputTokensMax",
    "required",
  ] as const;
  for (const key of defaults) assert.equal(told[key], left[key], key);
  assert.equal(manifest?.onUnknown, short.manifest?.onUnknown);
});

Deno.test("the README's script is a script", () => {
  assert.equal(parseScript("README.md", block("turns:\n  - text: Let me look.")).spans.length, 3);
});

Deno.test("the README's workflow is one, and has every key there is", () => {
  const text = block("kind: workflow");
  const problems = new Problems();
  const options = { file: "README.md", instructionsBeside: undefined };
  const { manifest } = parseManifest(text, options, problems);
  assert.deepEqual(problems.list.map(formatProblem), []);
  assert.equal(manifest?.workflow?.nodes.length, 4);
  for (const [path, keys] of Object.entries(WORKFLOW_KEYS)) {
    if (path === "output" || path === "budget") continue;
    for (const key of keys) assert.match(text, new RegExp(`(^|[ {])${key}:`, "m"), key);
  }
});
