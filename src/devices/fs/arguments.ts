/** Arguments of the file tools, which their schemas have checked already. */
import type { JsonObject } from "../../base/json.ts";

export function textOf(input: JsonObject, name: string): string {
  const value = input[name];
  return typeof value === "string" ? value : "";
}

export function optionalText(input: JsonObject, name: string): string | undefined {
  const value = input[name];
  return typeof value === "string" ? value : undefined;
}

export function numberOf(input: JsonObject, name: string, otherwise: number): number {
  const value = input[name];
  return typeof value === "number" ? value : otherwise;
}

export function isSet(input: JsonObject, name: string): boolean {
  return input[name] === true;
}

/** A closed object schema. */
export function schemaOf(properties: JsonObject, required: string[]): JsonObject {
  return { type: "object", properties, required, additionalProperties: false };
}

export const PATH_PROPERTY: JsonObject = {
  type: "string",
  description: "Path of the file, from the working folder or absolute",
};
