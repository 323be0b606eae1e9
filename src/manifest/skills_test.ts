import assert from "node:assert/strict";
import { disk } from "../base/disk.ts";
import { SysError } from "../base/errors.ts";
import type { LoadedAgent } from "./agent_manifest.ts";
import { checkSkills } from "./check_skills.ts";
import { loadAgentFile } from "./load_agent.ts";
import { Problems } from "./problems.ts";
import { parseSkill } from "./skill_file.ts";
import { findSkills } from "./skill_table.ts";
import { systemText } from "./system_text.ts";

const BODY = "Read it twice.\n";

function skillText(name: string, more = ""): string {
  return `---\nname: ${name}\ndescription: What ${name} is for\n${more}---\n${BODY}`;
}

/** A user's configuration and a project, in a folder that is gone afterwards. */
class Machine {
  readonly root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-skills-" }));
  readonly project = `${this.root}/home/project`;

  constructor(files: { [path: string]: string }) {
    Deno.mkdirSync(`${this.project}/.rnix`, { recursive: true, mode: 0o700 });
    for (const [path, text] of Object.entries(files)) this.write(path, text);
  }

  /** `user/…` lies in the user's skills, all else in the project. */
  write(path: string, text: string): void {
    const file = path.startsWith("user/")
      ? `${this.root}/config/skills/${path.slice("user/".length)}`
      : `${this.project}/${path}`;
    Deno.mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(file, text);
  }

  table() {
    return findSkills({
      storage: disk,
      cwd: this.project,
      home: `${this.root}/home`,
      uid: Deno.uid() ?? 0,
      config: `${this.root}/config`,
    });
  }

  async agent(skills: string): Promise<LoadedAgent> {
    const path = `${this.root}/agent.yaml`;
    const models = "models: { provider: openai, preferred: m }";
    Deno.writeTextFileSync(path, `name: a\ninstructions: Do.\n${models}\nskills: ${skills}\n`);
    return await loadAgentFile(disk, path, { shown: "agent.yaml", skills: await this.table() });
  }

  async told(skills: string): Promise<string[]> {
    const error = await this.agent(skills).then(() => undefined, (thrown) => thrown);
    assert.ok(error instanceof SysError, String(error));
    assert.equal(error.exitCode, 2);
    return error.message.replaceAll(this.root, "").split("\n").map((line) => line.trim());
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.root, { recursive: true });
  }
}

function parsed(text: string, folderName = "s") {
  const problems = new Problems();
  const skill = parseSkill(text, { file: "SKILL.md", folderName }, problems);
  const told = problems.list.map(({ line, column, message }) => `${line}:${column} ${message}`);
  return { skill, told };
}

Deno.test("[R24] a manifest's skills are found by name: .rnix before .agents before the user's", async () => {
  using machine = new Machine({
    ".rnix/skills/one/SKILL.md": skillText("one"),
    ".agents/skills/one/SKILL.md": "broken",
    ".agents/skills/two/SKILL.md": skillText("two"),
    "user/two/SKILL.md": "broken",
    "user/three/SKILL.md": skillText("three"),
  });
  const { manifest, skills, projectFiles } = await machine.agent("[three, one, two]");
  assert.deepEqual(manifest.skills, ["three", "one", "two"]);
  assert.deepEqual(skills?.map(({ name, folder, body }) => [name, folder, body]), [
    ["three", `${machine.root}/config/skills/three`, "Read it twice."],
    ["one", `${machine.project}/.rnix/skills/one`, "Read it twice."],
    ["two", `${machine.project}/.agents/skills/two`, "Read it twice."],
  ]);
  assert.deepEqual(
    projectFiles?.map(({ name, path }) => [name, path.replace(machine.project, "")]),
    [["SKILL.md", "/.rnix/skills/one/SKILL.md"], ["SKILL.md", "/.agents/skills/two/SKILL.md"]],
    "the user's own needs no consent",
  );
});

Deno.test("a skill that there isn't is a mistake of the manifest, with its place and the nearest name", async () => {
  using machine = new Machine({ "user/code-analysis/SKILL.md": skillText("code-analysis") });
  const [, ...told] = await machine.told("[code-analisys, code-analysis, code-analysis, 3]");
  assert.equal(told.length, 3);
  assert.match(
    told[0] ?? "",
    /^agent\.yaml:4:10: Unknown skill "code-analisys" \(looked into .*\); did you mean "code-analysis"\?$/,
  );
  assert.match(told[1] ?? "", /^agent\.yaml:4:40: Skill "code-analysis" is listed twice$/);
  assert.match(told[2] ?? "", /^agent\.yaml:4:55: Expected text/);
});

Deno.test("mistakes of a named skill are told with those of the manifest, each with its own file", async () => {
  using machine = new Machine({ "user/a/SKILL.md": "---\nname: b\n---\n" });
  const told = await machine.told("[a, gone]");
  assert.ok(told.some((line) => line.startsWith("agent.yaml:4:13: Unknown skill")));
  const own = told.filter((line) => line.includes("SKILL.md:"));
  assert.equal(own.length, 3, told.join("\n"));
});

Deno.test("all mistakes of a SKILL.md are told at once, at their places", () => {
  const text =
    "---\nname: Not_good\ndescription: 3\nallowed-tools: [Read, 4]\nalowed-tools: x\n---\n";
  assert.deepEqual(parsed(text).told.map((line) => line.split(" ").slice(0, 3).join(" ")), [
    "2:7 Invalid name",
    "3:14 Expected text,",
    "4:23 Expected the",
    "5:1 Unknown key",
    "7:1 There is",
  ]);
  assert.deepEqual(parsed("---\nnmae: s\ndescription: d\n---\nx").told, [
    '2:1 Unknown key "nmae"; did you mean `name`?',
  ]);
  assert.match(parsed("no front matter").told[0] ?? "", /^1:1 A SKILL\.md begins with ---/);
  assert.match(parsed("---\nname: [\n---\nx").told[0] ?? "", /^\d+:\d+ Invalid YAML/);
  assert.match(parsed(skillText("other")).told[0] ?? "", /its folder "s"; they must be the same/);
  assert.match(
    parsed(`---\nname: s\ndescription: ${"d".repeat(1_025)}\n---\nx`).told[0] ?? "",
    /^3:14 Expected at most 1024 characters/,
  );
});

Deno.test("keys of other programs are passed over; line ends of other systems are taken", () => {
  const { skill, told } = parsed(
    "---\r\nname: s\r\ndescription: >\r\n  Two\r\n  lines\r\nlicense: MIT\r\nmodel: opus\r\n---\r\nDo.\r\n",
  );
  assert.deepEqual(told, []);
  assert.equal(skill?.description, "Two lines");
  assert.equal(skill?.body, "Do.");
});

Deno.test("allowed-tools grants built-in tools as a whole, written as a text or as a list", () => {
  for (const given of ["Read, Grep", "Read Grep", "[Grep, Read]", "Read,Grep mcp__a__b"]) {
    const { skill } = parsed(skillText("s", `allowed-tools: ${given}\n`));
    assert.deepEqual(skill?.tools, ["Read", "Grep"], given);
    assert.deepEqual(skill?.notices, [], given);
  }
});

Deno.test("a part of a tool, and a tool that there isn't, grant nothing and are told", () => {
  const more = "allowed-tools: Bash(git add:*), Bash(git:*, ls) read WebFetch Read(src/**)\n";
  const { skill } = parsed(skillText("s", more));
  assert.deepEqual(skill?.tools, [], "never silently the whole tool");
  assert.deepEqual(skill?.notices.map((notice) => notice.match(/"[^"]*" grants nothing/)?.[0]), [
    '"Bash(git add:*)" grants nothing',
    '"Bash(git:*, ls)" grants nothing',
    '"read" grants nothing',
    '"WebFetch" grants nothing',
    '"Read(src/**)" grants nothing',
  ]);
  assert.match(skill?.notices[2] ?? "", /did you mean "Read"\?/);
});

Deno.test("consent is to the text and to every file beside it, each by itself", async () => {
  using machine = new Machine({
    ".rnix/skills/s/SKILL.md": skillText("s"),
    ".rnix/skills/s/docs/more.md": "more",
    ".rnix/skills/s/.hidden": "h",
  });
  Deno.symlinkSync("/etc/passwd", `${machine.project}/.rnix/skills/s/passwd`);
  const before = await machine.agent("[s]");
  assert.deepEqual(Object.keys(before.skills?.[0]?.files ?? {}), ["docs/more.md"]);
  machine.write(".rnix/skills/s/docs/more.md", "other");
  const after = await machine.agent("[s]");
  assert.deepEqual(
    after.projectFiles?.map(({ path, contentHash }, index) => [
      path.replace(/^.*\/s\//, ""),
      contentHash === before.projectFiles?.[index]?.contentHash,
    ]),
    [["SKILL.md", true], ["docs/more.md", false]],
  );
});

Deno.test("of a skill the system text has name and description alone, and no path", async () => {
  using machine = new Machine({ "user/s/SKILL.md": skillText("s") });
  const agent = await machine.agent("[s]");
  const text = systemText(agent);
  assert.match(text, /^Do\.\n\n# Skills\n\n.*\n\n- s: What s is for$/);
  assert.equal(systemText({ manifest: agent.manifest }), "Do.", "without skills nothing is added");
  assert.match(
    systemText({ manifest: agent.manifest, notes: "Use tabs.\n" }),
    /<project_notes>\nUse tabs\.\n<\/project_notes>$/,
  );
});

Deno.test("a folder of the project that others may write gives no skills", async () => {
  using machine = new Machine({ ".rnix/skills/s/SKILL.md": skillText("s") });
  Deno.chmodSync(`${machine.project}/.rnix`, 0o777);
  assert.match(
    (await machine.told("[s]"))[0] ?? "",
    /Unknown skill "s" .*other users may write it/,
  );
});

Deno.test("check tells of a broken skill that no agent names", async () => {
  using machine = new Machine({
    "user/good/SKILL.md": skillText("good"),
    "user/bad/SKILL.md": "nothing",
  });
  const [fault, other] = await checkSkills(await machine.table());
  assert.equal(fault?.severity, "warning");
  assert.match(fault?.file ?? "", /bad\/SKILL\.md$/);
  assert.equal(other, undefined);
});
