/** `Write`: a file made or replaced whole. */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import { type BuiltinTool, textAnswer } from "../builtin.ts";
import { PATH_PROPERTY, schemaOf, textOf } from "./arguments.ts";
import { FILE_BYTES_MAX, replaceFile } from "./file_text.ts";
import { refused, type WorkingFolder } from "./working_folder.ts";

export function writeTool(folder: WorkingFolder): BuiltinTool {
  return {
    definition: {
      name: "Write",
      modelName: "Write",
      description:
        "Writes a file of the working folder: makes it, or replaces all that is in it. Missing folders on its way are made.",
      inputSchema: schemaOf({
        path: PATH_PROPERTY,
        content: { type: "string", description: "All that the file is to hold" },
      }, ["path", "content"]),
    },
    effect: BUILTIN_EFFECTS.Write,
    async run(input) {
      const path = textOf(input, "path");
      const content = textOf(input, "content");
      if (content.length > FILE_BYTES_MAX) {
        throw refused("RESOURCE_EXHAUSTED", path, `The content is over ${FILE_BYTES_MAX} bytes`);
      }
      const located = await folder.locateMaking(path);
      if (located.kind === "folder") throw refused("INVALID", path, "It is a folder");
      const note = await replaceFile(located, content);
      const done = located.kind === undefined ? "Made" : "Replaced";
      const size = `${content.length} ${content.length === 1 ? "character" : "characters"}`;
      return textAnswer(`${done} ${located.shown} (${size})${note}`);
    },
  };
}
