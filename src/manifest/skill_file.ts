/**
 * A `SKILL.md` (Agent Skills format) as a skill, or all its mistakes at once, each with line and column.
 *
 * Keys of other programs are passed over, unless one looks like a misspelt key of the format.
 * What `allowed-tools` names is granted only where rnix can keep to it: a built-in tool as a whole. A part of one, such as `Bash(git:*)`, grants nothing, which is told; tools of servers are permitted by their mounts and need no grant.
 */
import { z } from "zod";
import { BUILTIN_TOOLS, type BuiltinToolName } from "../base/builtin_tools.ts";
import { nearest } from "../base/nearest.ts";
import { isMapping } from "./not_built.ts";
import { FILE_START, type Position, type Problems } from "./problems.ts";
import { type Add, addIssues, checkShape, describe } from "./schema_issues.ts";
import { readYaml, type YamlSource } from "./yaml_source.ts";

const NAME_CHARS_MAX = 64;
const DESCRIPTION_CHARS_MAX = 1024;
const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** The keys of the format. */
const KEYS = ["name", "description", "allowed-tools", "license", "compatibility", "metadata"];
const TOOLS_KEY = "allowed-tools";
/** Front matter between two lines of dashes, then the body. */
const FRONT_MATTER = /^---[ \t]*\r?\n([\s\S]*?)^---[ \t]*(?:\r?\n|$)([\s\S]*)$/m;
/** A tool's name, with a pattern in brackets that may hold spaces and commas. */
const TOOL = /[^\s,()]+(?:\([^()]*\))?|[()]/g;

/** What a file holds. */
export interface SkillFile {
  name: string;
  description: string;
  /** What comes after the front matter. */
  body: string;
  /** Built-in tools that it grants, each once. */
  tools: BuiltinToolName[];
  /** What of `allowed-tools` grants nothing, a sentence each. */
  notices: string[];
}

/** Whether a text can be the name of a skill. */
export function isSkillName(name: string): boolean {
  return name.length <= NAME_CHARS_MAX && NAME.test(name);
}

/** Parses the text. Mistakes go to `problems`; then nothing is given. Never throws. */
export function parseSkill(
  text: string,
  { file, folderName }: { file: string; folderName: string },
  problems: Problems,
): SkillFile | undefined {
  const before = problems.count;
  const add: Add = (position, message) => problems.add(file, position, message);
  const match = text.startsWith("---") ? FRONT_MATTER.exec(text) : null;
  const [whole = "", front = "", body = ""] = match ?? [];
  if (match === null || match.index > 0) {
    add(
      FILE_START,
      "A SKILL.md begins with --- on a line, name and description, and --- on a line",
    );
    return undefined;
  }
  // An empty line in the place of the first dashes keeps the line numbers right.
  const source = readYaml(`\n${front}`);
  for (const { position, message } of source.mistakes) add(position, message);
  const value = source.value ?? {};
  if (source.value === undefined) return undefined;
  if (!isMapping(value)) {
    add({ line: 2, column: 1 }, `Expected a mapping of keys, got ${describe(value)}`);
    return undefined;
  }
  const parsed = checkShape(schemaFor(folderName), value);
  if (parsed === undefined) {
    add(FILE_START, "So many mistakes that they can't be listed");
    return undefined;
  }
  const meant = addMisspelt(value, source, add);
  if (!parsed.success) {
    // What was misspelt isn't missing as well.
    const issues = parsed.error.issues.filter(({ path: [key] }) => !meant.includes(String(key)));
    addIssues(issues, source, { add, keysAt: () => ({ known: KEYS, others: [] }) });
  }
  const allowed = allowedTools(value[TOOLS_KEY], source, add);
  if (body.trim() === "") {
    add(lastLine(whole), "There is nothing after the front matter; write the instructions there");
  }
  if (!parsed.success || problems.count > before) return undefined;
  const { name, description } = parsed.data;
  const granted = grantsOf(name, allowed);
  return {
    name,
    description: description.trim().replaceAll(/\s+/g, " "),
    body: body.trim(),
    ...granted,
  };
}

function schemaFor(folderName: string) {
  return z.looseObject({
    name: z.string().superRefine((name, context) => {
      const message = nameFault(name, folderName);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    }),
    description: z.string().superRefine((text, context) => {
      const message = descriptionFault(text);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    }),
  });
}

function nameFault(name: string, folderName: string): string | undefined {
  if (!isSkillName(name)) {
    return `Invalid name ${
      describe(name)
    }: use lower-case letters and digits, with a single - between them, at most ${NAME_CHARS_MAX}`;
  }
  return name === folderName
    ? undefined
    : `The skill is named "${name}" and its folder "${folderName}"; they must be the same`;
}

function descriptionFault(text: string): string | undefined {
  if (text.trim() === "") return "Expected some text, got an empty one";
  return text.length > DESCRIPTION_CHARS_MAX
    ? `Expected at most ${DESCRIPTION_CHARS_MAX} characters, got ${text.length}`
    : undefined;
}

/** Tells of misspelt keys, and gives the absent ones that were meant. */
function addMisspelt(value: Record<string, unknown>, source: YamlSource, add: Add): string[] {
  return Object.keys(value).flatMap((key) => {
    const near = KEYS.includes(key) ? undefined : nearest(key, KEYS);
    if (near === undefined) return [];
    add(() => source.keyAt([key]), `Unknown key "${key}"; did you mean \`${near}\`?`);
    return Object.hasOwn(value, near) ? [] : [near];
  });
}

/** What is named, as it is written. */
function allowedTools(value: unknown, source: YamlSource, add: Add): string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return value.match(TOOL) ?? [];
  if (!Array.isArray(value)) {
    const message = `Expected names of tools, as a text or a list, got ${describe(value)}`;
    add(() => source.valueAt([TOOLS_KEY]), message);
    return [];
  }
  return value.flatMap((item: unknown, index): string[] => {
    if (typeof item === "string") return item.match(TOOL) ?? [];
    const message = `Expected the name of a tool, got ${describe(item)}`;
    add(() => source.valueAt([TOOLS_KEY, index]), message);
    return [];
  });
}

function grantsOf(
  skill: string,
  allowed: readonly string[],
): Pick<SkillFile, "tools" | "notices"> {
  const tools = BUILTIN_TOOLS.filter((name) => allowed.includes(name));
  const notices = [...new Set(allowed)].flatMap((given) => {
    const why = ungranted(given);
    return why === undefined ? [] : [`Skill "${skill}": ${why}`];
  });
  return { tools, notices };
}

/** Why a name of `allowed-tools` grants nothing; undefined where it does, or needn't. */
function ungranted(given: string): string | undefined {
  if (BUILTIN_TOOLS.some((name) => name === given) || given.startsWith("mcp__")) return undefined;
  const whole = given.replace(/\(.*$/, "");
  if (whole !== given && BUILTIN_TOOLS.some((name) => name === whole)) {
    return `"${given}" grants nothing, because rnix can't hold ${whole} to a part of it; "${whole}" under tools of the manifest grants all of it`;
  }
  const near = nearest(whole, BUILTIN_TOOLS);
  const advice = near === undefined ? "" : `; did you mean "${near}"?`;
  return `"${given}" grants nothing, because rnix has no tool of that name${advice}`;
}

function lastLine(text: string): Position {
  return { line: text.split("\n").length, column: 1 };
}
