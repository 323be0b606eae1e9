/** The file tools of one run: what they are called, and what each does in its working folder. */
import type { BuiltinTool } from "../builtin.ts";
import { editTool } from "./edit_tool.ts";
import { globTool } from "./glob_tool.ts";
import { grepTool } from "./grep_tool.ts";
import { readTool } from "./read_tool.ts";
import type { WorkingFolder } from "./working_folder.ts";
import { writeTool } from "./write_tool.ts";

/** By the name that a manifest and a model use. */
export const FILE_TOOLS: { readonly [name: string]: (folder: WorkingFolder) => BuiltinTool } = {
  Read: readTool,
  Write: writeTool,
  Edit: editTool,
  Glob: globTool,
  Grep: grepTool,
};

export { WorkingFolder } from "./working_folder.ts";
