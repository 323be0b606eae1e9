/** `Edit`: one piece of a text file replaced by another; which piece must be beyond doubt. */
import { BUILTIN_EFFECTS } from "../../base/builtin_tools.ts";
import { type BuiltinTool, textAnswer } from "../builtin.ts";
import { isSet, PATH_PROPERTY, schemaOf, textOf } from "./arguments.ts";
import { counted, readText, replaceFile } from "./file_text.ts";
import { refused, type WorkingFolder } from "./working_folder.ts";

export function editTool(folder: WorkingFolder): BuiltinTool {
  return {
    definition: {
      name: "Edit",
      modelName: "Edit",
      description:
        "Replaces a piece of a text file of the working folder. old_text must be there exactly once, unless all is true: give enough of what is around it.",
      inputSchema: schemaOf({
        path: PATH_PROPERTY,
        old_text: { type: "string", minLength: 1, description: "What is there, to the letter" },
        new_text: { type: "string", description: "What is to be there" },
        all: { type: "boolean", description: "Replace every place" },
      }, ["path", "old_text", "new_text"]),
    },
    effect: BUILTIN_EFFECTS.Edit,
    async run(input) {
      const located = await folder.locateExisting(textOf(input, "path"), "file");
      const text = await readText(located);
      const [oldText, newText] = [textOf(input, "old_text"), textOf(input, "new_text")];
      if (oldText === newText) {
        throw refused("INVALID", located.shown, "old_text and new_text are the same");
      }
      const places = text.split(oldText).length - 1;
      if (places === 0) throw refused("INVALID", located.shown, notThere(text, oldText));
      if (places > 1 && !isSet(input, "all")) {
        throw refused(
          "INVALID",
          located.shown,
          `old_text is there ${places} times; give more of what is around it, or set all`,
        );
      }
      const note = await replaceFile(located, text.replaceAll(oldText, () => newText));
      return textAnswer(`Edited ${located.shown} (${counted(places, "place")})${note}`);
    },
  };
}

function notThere(text: string, oldText: string): string {
  const other = oldText.includes("\r\n")
    ? oldText.replaceAll("\r\n", "\n")
    : oldText.replaceAll("\n", "\r\n");
  return other !== oldText && text.includes(other)
    ? "old_text isn't there, but is with other line ends (the file's are " +
      `${other.includes("\r\n") ? "\\r\\n" : "\\n"})`
    : "old_text isn't there";
}
