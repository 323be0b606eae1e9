/** From what a server lists to the tools a process can use: sorted, named, the unusable ones set aside with their reason. */
import {
  canonicalJson,
  isJsonObject,
  type Json,
  JSON_DEPTH_MAX,
  type JsonObject,
  nestsDeeper,
} from "../../base/json.ts";
import type { ToolDefinition } from "../../vfs/device.ts";
import { modelNameOf } from "./tool_names.ts";

export interface ToolTable {
  /** Sorted by name. */
  tools: ToolDefinition[];
  setAside: { [tool: string]: string };
}

/** A schema that is only composed of others may leave out that it is an object: arguments always are. */
const COMPOSING = ["anyOf", "oneOf", "allOf", "$ref"];

/** Builds the table; any listing gives one. `extraFault`: why a tool can't be called over the server's transport. */
export function buildToolTable(
  server: string,
  listed: readonly Json[],
  extraFault: (definition: Json) => string | undefined = () => undefined,
): ToolTable {
  const tools = new Map<string, ToolDefinition>();
  const taken = new Map<string, string>();
  const setAside: [string, string][] = [];
  listed.forEach((item, index) => {
    const name = isJsonObject(item) ? item["name"] : undefined;
    if (!isJsonObject(item) || typeof name !== "string" || name === "") {
      return setAside.push([`#${index + 1}`, "It has no name"]);
    }
    if (!name.isWellFormed()) {
      return setAside.push([name.toWellFormed(), "Its name holds half a character"]);
    }
    const reason = faultOf(item) ?? extraFault(item) ??
      (tools.has(name) ? "It is listed twice" : undefined);
    if (reason !== undefined) return setAside.push([name, reason]);
    const tool = definitionOf(server, name, item);
    const holder = taken.get(tool.modelName);
    if (holder !== undefined) return setAside.push([name, `Its model name is that of "${holder}"`]);
    taken.set(tool.modelName, name);
    tools.set(name, tool);
  });
  return {
    tools: [...tools.values()].sort((a, b) => a.name < b.name ? -1 : 1),
    setAside: Object.fromEntries(setAside),
  };
}

/** Whether two tables offer the same. */
export function sameTools(a: ToolTable, b: ToolTable): boolean {
  const text = (table: ToolTable) =>
    canonicalJson([table.tools.map((tool): Json => ({ ...tool })), table.setAside]);
  return text(a) === text(b);
}

function faultOf(item: JsonObject): string | undefined {
  if (nestsDeeper(item)) return `Its definition is nested deeper than ${JSON_DEPTH_MAX} levels`;
  const { execution } = item;
  if (isJsonObject(execution) && execution["taskSupport"] === "required") {
    return "It can only be called as a task, which rnix doesn't do";
  }
  const schema = item["inputSchema"];
  if (schema === undefined) return "It has no inputSchema";
  if (!isJsonObject(schema)) return "Its inputSchema is no object";
  const composed = COMPOSING.some((keyword) => schema[keyword] !== undefined);
  if (schema["type"] !== "object" && !(composed && schema["type"] === undefined)) {
    return `Its inputSchema has type ${JSON.stringify(schema["type"] ?? null)}, not "object"`;
  }
  const properties = schema["properties"];
  if (properties !== undefined && !isJsonObject(properties)) {
    return "The properties of its inputSchema are no object";
  }
  return undefined;
}

function definitionOf(server: string, name: string, item: JsonObject): ToolDefinition {
  const { title, description, inputSchema, outputSchema, annotations } = item;
  return {
    name,
    modelName: modelNameOf(server, name),
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    inputSchema: isJsonObject(inputSchema) ? inputSchema : {},
    ...(isJsonObject(outputSchema) ? { outputSchema } : {}),
    ...(isJsonObject(annotations) ? { annotations } : {}),
  };
}
