/** Arguments that a tool's schema allows, made without knowing the tool. */

export type Value = null | boolean | number | string | Value[] | Explored;
/** An object in what was explored. */
export interface Explored {
  [name: string]: Value;
}

export function isFields(value: Value | undefined): value is Explored {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What else there is to make a value from. */
export interface Surroundings {
  tools: readonly Explored[];
}

/** A value for a schema: all properties of an object, whether they must be there or not. A property that is called `schema` gets the richest schema that was listed, so that it can be seen how it came through. */
export function sampleOf(schema: Value | undefined, { tools }: Surroundings): Value {
  if (!isFields(schema)) return {};
  const { properties, type, enum: choices } = schema;
  if (Array.isArray(choices) && choices[0] !== undefined) return choices[0];
  if (type === "string") return "us-west1";
  if (type === "number" || type === "integer") return 3;
  if (type === "boolean") return true;
  if (type === "array") return [];
  if (type === "null") return null;
  if (!isFields(properties)) return {};
  const members = Object.entries(properties).map(([name, property]): [string, Value] => [
    name,
    name === "schema" ? richest(tools) : sampleOf(property, { tools }),
  ]);
  return Object.fromEntries(members);
}

function richest(tools: readonly Explored[]): Value {
  const schemas = tools.map(({ inputSchema }) => inputSchema ?? {});
  return schemas.toSorted((a, b) => JSON.stringify(b).length - JSON.stringify(a).length)[0] ?? {};
}
