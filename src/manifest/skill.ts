/** A skill: instructions for one kind of work, which an agent is told when it asks for them. */
import type { BuiltinToolName } from "../base/builtin_tools.ts";

/** A skill as a run keeps it. */
export interface Skill {
  name: string;
  description: string;
  /** What its agent is told when it asks. */
  body: string;
  /** Built-in tools that it grants. */
  tools: BuiltinToolName[];
  /** Absolute. */
  folder: string;
  /** SHA-256 of the text of each file beside `SKILL.md`, by its path in the folder. */
  files: { [path: string]: string };
}
