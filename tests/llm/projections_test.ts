/** What providers are sent of odd schemas: nothing that they refuse, and nothing narrower than what the tool takes. */
import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import { canonicalJson, type Json, type JsonObject } from "../../src/base/json.ts";
import { projectForAnthropic } from "../../src/llm/anthropic/provider.ts";
import { projectForGemini } from "../../src/llm/google/gemini_schema.ts";
import { type Projection, projectSchema } from "../../src/llm/schema_projection.ts";
import { anthropicShape } from "../servers/anthropic_shape.ts";
import { checkChatRequest } from "../servers/chat_request_check.ts";
import { geminiShape } from "../servers/gemini_shape.ts";
import { responsesShape } from "../servers/responses_shape.ts";
import { oddInputSchema, randomFrom, valueFor } from "./odd_schemas.ts";

const SCHEMAS = 500;
const VALUES = 12;
const ajv = new Ajv2020({
  strict: false,
  validateSchema: false,
  validateFormats: false,
  logger: false,
});

interface Dialect {
  name: string;
  project(schema: JsonObject): Projection;
  /** What its endpoint would refuse of a tool with this schema. */
  problems(schema: Json): string[];
}

const headers = new Headers();
const isAboutTools = (problem: string) => problem.startsWith("tool ");

const DIALECTS: Dialect[] = [
  {
    name: "openai-compatible",
    project: projectSchema,
    problems: (parameters) =>
      checkChatRequest({ tools: [{ type: "function", function: { name: "t", parameters } }] })
        .filter(isAboutTools),
  },
  {
    name: "openai",
    project: projectSchema,
    problems: (parameters) =>
      responsesShape.check(
        { tools: [{ type: "function", name: "t", parameters, strict: false }] },
        { pathname: "", headers },
      ).filter(isAboutTools),
  },
  {
    name: "anthropic",
    project: projectForAnthropic,
    problems: (input_schema) =>
      anthropicShape.check({ tools: [{ name: "t", input_schema }] }, { pathname: "", headers })
        .filter(isAboutTools),
  },
  {
    name: "google",
    project: projectForGemini,
    problems: (parametersJsonSchema) =>
      geminiShape.check(
        { tools: [{ functionDeclarations: [{ name: "t", parametersJsonSchema }] }] },
        { pathname: "", headers },
      ).filter(isAboutTools),
  },
];

function compiled(schema: JsonObject): ((value: Json) => boolean) | undefined {
  try {
    const check = ajv.compile(schema);
    return (value) => check(value) === true;
  } catch {
    return undefined;
  }
}

for (const { name, project, problems } of DIALECTS) {
  Deno.test(`[B27] [B29] [B31] [B33] [B35] ${name}: of odd schemas nothing is sent that is refused or that forbids what the tool takes`, () => {
    let sent = 0;
    let tried = 0;
    for (let seed = 1; seed <= SCHEMAS; seed += 1) {
      const random = randomFrom(seed);
      const schema = oddInputSchema(random);
      const before = canonicalJson(schema);
      const projection = project(schema);
      const told = `seed ${seed}: ${before}`;
      assert.equal(canonicalJson(schema), before, `${told} was changed`);
      assert.deepEqual(project(schema), projection, `${told} is projected in two ways`);
      if ("refused" in projection) continue;
      sent += 1;
      const sentText = JSON.stringify(projection.schema);
      assert.deepEqual(problems(projection.schema), [], `${told} became ${sentText}`);
      // Of a choice at the top the properties of all branches are told: what an open branch takes under another one's name is nobody's aim.
      if (schema["anyOf"] !== undefined || schema["oneOf"] !== undefined) continue;
      const [fits, takes] = [compiled(schema), compiled(projection.schema)];
      if (fits === undefined) continue;
      assert.ok(takes !== undefined, `${told} became ${sentText}, which is no schema`);
      for (let value = 0; value < VALUES; value += 1) {
        const args = valueFor(random, schema);
        if (!fits(args)) continue;
        tried += 1;
        assert.ok(takes(args), `${told} became ${sentText}, which forbids ${JSON.stringify(args)}`);
      }
    }
    assert.ok(sent > SCHEMAS / 2 && tried > SCHEMAS / 4, `${sent} sent, ${tried} tried`);
  });
}
