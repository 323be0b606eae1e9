/**
 * `Skill`: what a skill says, and the text files beside its `SKILL.md`.
 *
 * The instructions are those that the run began with, wherever their file has gone. A file beside them is read when it is asked for, only in the skill's own folder, and only if it still is what it was when the run began: what a person agreed to, or has seen, is what the model is told.
 */
import { SysError } from "../../base/errors.ts";
import { sha256Hex } from "../../base/json.ts";
import { type BuiltinTool, textAnswer } from "../builtin.ts";
import { optionalText, schemaOf, textOf } from "../fs/arguments.ts";
import { readText } from "../fs/file_text.ts";
import { WorkingFolder } from "../fs/working_folder.ts";

/** A skill as the tool needs it. */
export interface SkillSource {
  name: string;
  body: string;
  /** Absolute. */
  folder: string;
  /** SHA-256 of the text of each file beside `SKILL.md`, by its path in the folder. */
  files: { readonly [path: string]: string };
}

const FILES_SHOWN = 50;

/** The tool over an agent's skills, of which there is one at least. */
export function skillTool(skills: readonly SkillSource[]): BuiltinTool {
  const names = skills.map(({ name }) => name);
  return {
    definition: {
      name: "Skill",
      modelName: "Skill",
      description:
        "Gives the instructions of one of your skills; with file, a text file that belongs to it.",
      inputSchema: schemaOf({
        name: { type: "string", enum: names, description: "Name of the skill" },
        file: {
          type: "string",
          description: "Path of a file of the skill, as its instructions name it",
        },
      }, ["name"]),
    },
    effect: "read",
    async run(input) {
      const name = textOf(input, "name");
      const skill = skills.find((each) => each.name === name);
      if (skill === undefined) throw new SysError("NOT_FOUND", `There is no skill "${name}"`);
      const file = optionalText(input, "file");
      return textAnswer(file === undefined ? told(skill) : await fileOf(skill, file));
    },
  };
}

function told({ body, folder, files }: SkillSource): string {
  const names = Object.keys(files);
  if (names.length === 0) return body;
  const more = names.length > FILES_SHOWN ? `\n(and ${names.length - FILES_SHOWN} more)` : "";
  const list = names.slice(0, FILES_SHOWN).map((name) => `- ${name}`).join("\n");
  return `${body}\n\nFiles of this skill, in ${folder}; give one as file to read it:\n${list}${more}`;
}

async function fileOf(skill: SkillSource, given: string): Promise<string> {
  const path = given.replace(/^(\.\/)+/, "");
  const hash = Object.hasOwn(skill.files, path) ? skill.files[path] : undefined;
  if (hash === undefined) {
    const names = Object.keys(skill.files).slice(0, FILES_SHOWN).join(", ");
    const there = names === "" ? "it has none" : `there is ${names}`;
    throw new SysError("NOT_FOUND", `Skill "${skill.name}" has no file "${given}"; ${there}`);
  }
  const folder = await WorkingFolder.open(skill.folder);
  const text = await readText(await folder.locateExisting(path, "file"));
  if (sha256Hex(text.replace(/^\ufeff/, "")) === hash) return text;
  throw new SysError(
    "PERMISSION",
    `"${path}" of skill "${skill.name}" is not what it was when this run began`,
  );
}
