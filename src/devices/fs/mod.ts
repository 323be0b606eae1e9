/** The file tools of one run: what they are called, and what each does in its working folder. */
import type { BuiltinTool } from "../builtin.ts";
import type { Redactor } from "../../base/redaction.ts";
import { editTool } from "./edit_tool.ts";
import { globTool } from "./glob_tool.ts";
import { grepTool } from "./grep_tool.ts";
import { readTool } from "./read_tool.ts";
import type { WorkingFolder } from "./working_folder.ts";
import { writeTool } from "./write_tool.ts";

/** What makes a tool for a folder. `secrets` go out of what it tells before anything is cut. */
export type MakeFileTool = (folder: WorkingFolder, secrets: Redactor) => BuiltinTool;

/** By the name that a manifest and a model use. */
export const FILE_TOOLS: { readonly [name: string]: MakeFileTool } = {
  Read: readTool,
  Write: writeTool,
  Edit: editTool,
  Glob: globTool,
  Grep: grepTool,
};

export { WorkingFolder } from "./working_folder.ts";
