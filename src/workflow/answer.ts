/** The answer of an agent that was asked for JSON, held against the schema. */
import { type Json, JSON_DEPTH_MAX, type JsonObject, nestsDeeper } from "../base/json.ts";

/** What is wrong with a value, or undefined. Compiled before the program is made, so that a program stays pure. */
export type Validate = (value: Json) => string | undefined;

/** Whether an answer fits, and what it is as a value. */
export type Fit = { isFit: true; value: Json } | { isFit: false; fault: string };

/** Whole text in a fence, as models like to write it. */
const FENCED = /^```[a-zA-Z]*\r?\n([\s\S]*?)\r?\n?```$/;

/** Reads an answer and checks it. */
export function fitOf(text: string, validate: Validate): Fit {
  const trimmed = text.trim();
  const inner = FENCED.exec(trimmed)?.[1] ?? trimmed;
  let value: Json;
  try {
    value = JSON.parse(inner);
  } catch {
    return { isFit: false, fault: "it is not JSON" };
  }
  if (nestsDeeper(value)) {
    return { isFit: false, fault: `it is nested deeper than ${JSON_DEPTH_MAX} levels` };
  }
  const fault = validate(value);
  return fault === undefined ? { isFit: true, value } : { isFit: false, fault };
}

/** What an agent is told that is to answer in JSON. */
export function askedFor(schema: JsonObject): string {
  return "\n\nYour last answer is read by a program: it must be JSON alone, with nothing before or after it, " +
    `that fits this JSON schema:\n${JSON.stringify(schema)}`;
}

/** What is told to the next one after an answer that didn't fit. What the first one did is done: only its answer is wanted in another form. */
export function correction(answer: string, fault: string): string {
  return "\n\nThis was worked on already, and only the answer could not be used: " +
    `${fault}. Do not do the work again; give the same answer in the form that is asked for. ` +
    `The answer was:\n${answer}`;
}
