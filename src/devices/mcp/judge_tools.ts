/** What each provider would make of a server's tools: which it couldn't be offered, whose schemas can't be passed on as they are, and why. */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ProviderVerdict } from "../../base/server_verdict.ts";
import { PROVIDERS } from "../../llm/registry.ts";
import type { ToolDefinition } from "../../vfs/device.ts";

/** Keywords that say nothing of the arguments: nobody misses them. */
const MEANINGLESS = new Set([
  ...["$schema", "$id", "id", "$anchor", "$comment", "$vocabulary", "$defs", "definitions"],
  ...["examples", "readOnly", "writeOnly", "title"],
]);

/** One verdict for each provider that is told of tools. */
export function judgeTools(tools: readonly ToolDefinition[]): ProviderVerdict[] {
  return PROVIDERS.flatMap(({ name: provider, tools: terms }) => {
    if (terms === undefined) return [];
    const verdict: ProviderVerdict = { provider, refused: [], altered: [] };
    const { max = Infinity, descriptionCharsMax = Infinity } = terms;
    for (const { name: tool, description = "", inputSchema } of tools) {
      const projection = terms.project(inputSchema);
      if ("refused" in projection) {
        verdict.refused.push({ tool, reason: projection.refused });
        continue;
      }
      const reason = alteration(inputSchema, projection);
      if (reason !== undefined) verdict.altered.push({ tool, reason });
      if (description.length > descriptionCharsMax) {
        const reason =
          `its description has more than ${descriptionCharsMax} characters: the rest goes on in the parameters'`;
        verdict.altered.push({ tool, reason });
      }
    }
    return [tools.length > max ? { ...verdict, tools_max: max } : verdict];
  });
}

/** What of a schema is told otherwise or not at all; undefined where nothing is. */
function alteration(
  given: JsonObject,
  { schema, note }: { schema: JsonObject; note?: string },
): string | undefined {
  const kept = keywordsOf(schema);
  const lost = [...keywordsOf(given)].filter((key) => !kept.has(key) && !MEANINGLESS.has(key));
  const told = [
    ...lost.length === 0 ? [] : [`told otherwise or left out: ${lost.sort().join(", ")}`],
    ...note === undefined ? [] : [note],
  ];
  return told.length === 0 ? undefined : told.join("; ");
}

/** Every keyword in a schema; names of properties and definitions aside. */
function keywordsOf(schema: Json, found: Set<string> = new Set()): Set<string> {
  if (Array.isArray(schema)) {
    for (const each of schema) keywordsOf(each, found);
    return found;
  }
  if (!isJsonObject(schema)) return found;
  for (const [key, value] of Object.entries(schema)) {
    found.add(key);
    if (NAMED.has(key) && isJsonObject(value)) {
      for (const member of Object.values(value)) keywordsOf(member, found);
    } else if (NESTED.has(key)) keywordsOf(value, found);
  }
  return found;
}

/** Keywords whose value is a mapping from names to schemas. */
const NAMED = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
]);
/** Keywords whose value is a schema or a list of them. */
const NESTED = new Set([
  ...["items", "prefixItems", "additionalItems", "contains", "additionalProperties"],
  ...["anyOf", "oneOf", "allOf", "not", "if", "then", "else", "propertyNames"],
]);
