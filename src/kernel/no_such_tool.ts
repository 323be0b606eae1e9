/** What a model is told that calls a tool which it doesn't have: withdrawn, of a server that isn't there, or made up. */
import { SysError } from "../base/errors.ts";
import { nearest } from "../base/nearest.ts";
import type { ToolTable } from "./tool_table.ts";

/** Of a long list of tools only so many names are told. */
const NAMES_SHOWN = 20;

/** NOT_FOUND with what is known of `name`, and what there is instead. */
export function noSuchTool(tools: ToolTable, name: string): SysError {
  return new SysError("NOT_FOUND", `${whatBecameOf(tools, name)}; ${whatThereIs(tools, name)}`);
}

function whatBecameOf(tools: ToolTable, name: string): string {
  const former = tools.former(name);
  if (former === undefined) return `There is no tool named "${name}"`;
  const { server, isMounted } = former;
  return isMounted
    ? `Server "${server}" has withdrawn the tool "${name}"`
    : `The tool "${name}" is gone: server "${server}" is not available`;
}

function whatThereIs(tools: ToolTable, name: string): string {
  const names = tools.definitions.map(({ modelName }) => modelName);
  if (names.length === 0) return "there are no tools";
  const near = nearest(name, names);
  if (near !== undefined) return `did you mean "${near}"?`;
  const more = names.length - NAMES_SHOWN;
  return `there is: ${names.slice(0, NAMES_SHOWN).join(", ")}${
    more > 0 ? ` and ${more} more` : ""
  }`;
}
