/** Parameters of a workflow: what was given with `--set` or by the workflow around it, made fit and kept with the manifest, so that a resume uses the same. */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { nearest } from "../../base/nearest.ts";
import type { LoadedAgent } from "../agent_manifest.ts";
import { parseText } from "./expression_text.ts";
import type { Workflow, WorkflowParameter } from "./workflow.ts";

/** Values by the names of parameters. */
export type Given = { readonly [parameter: string]: string | number | boolean };

/** Longest value of a parameter. */
const VALUE_CHARS_MAX = 100_000;

/** The agent with a value for every parameter. Throws INVALID (exit 2) with all that is wrong; an agent that is no workflow has none. */
export function withParameters(agent: LoadedAgent, given: Given): LoadedAgent {
  const { manifest } = agent;
  const { workflow, name } = manifest;
  if (workflow === undefined) {
    if (Object.keys(given).length === 0) return agent;
    throw invalid([`Agent "${name}" is no workflow, so it has no parameters to set`]);
  }
  const { values, faults } = valuesOf(workflow, given);
  if (faults.length > 0) throw invalid(faults);
  return { ...agent, manifest: { ...manifest, workflow: { ...workflow, values } } };
}

/** Values for all parameters, and what is wrong with those given. */
function valuesOf(
  { parameters }: Workflow,
  given: Given,
): { values: Workflow["values"]; faults: string[] } {
  const names = parameters.map(({ name }) => name);
  const faults = Object.keys(given).filter((name) => !names.includes(name))
    .map((name) => unknownFault(name, names));
  const values: Workflow["values"] = {};
  for (const parameter of parameters) {
    const { name, description, fallback } = parameter;
    const value = Object.hasOwn(given, name) ? given[name] : fallback;
    if (value === undefined) {
      const about = description === "" ? "" : ` (${description})`;
      faults.push(`Parameter "${name}"${about} has no value; give it with --set ${name}=…`);
      continue;
    }
    const typed = fitted(value, parameter);
    if (typeof typed === "object") faults.push(typed.fault);
    else values[name] = typed;
  }
  return { values, faults };
}

function unknownFault(name: string, names: readonly string[]): string {
  const near = nearest(name, names);
  if (near !== undefined) return `No parameter "${name}"; did you mean \`${near}\`?`;
  return `No parameter "${name}"; ${
    names.length === 0 ? "the workflow has none" : `there are ${names.join(", ")}`
  }`;
}

/** A value of the type of the default; without one a text. */
function fitted(
  value: string | number | boolean,
  { name, fallback }: WorkflowParameter,
): string | number | boolean | { fault: string } {
  const text = String(value);
  if (text.length > VALUE_CHARS_MAX) {
    return { fault: `Parameter "${name}" is longer than ${VALUE_CHARS_MAX} characters` };
  }
  if (typeof fallback === "number") {
    const number = text.trim() === "" ? NaN : Number(text);
    if (Number.isFinite(number)) return number;
    return { fault: `Parameter "${name}" is a number, not ${JSON.stringify(text)}` };
  }
  if (typeof fallback === "boolean") {
    if (text === "true" || text === "false") return text === "true";
    return { fault: `Parameter "${name}" is true or false, not ${JSON.stringify(text)}` };
  }
  return text;
}

function invalid(faults: readonly string[]): SysError {
  const message = faults.length === 1
    ? faults.join("")
    : [`${faults.length} mistakes`, ...faults.map((fault) => `  ${fault}`)].join("\n");
  return new SysError("INVALID", message, { exitCode: EXIT_USAGE });
}

/** What is wrong with the parameters that a node gives to the workflow that does it, as far as can be told before anything runs. */
export function nestedFaults(
  given: { readonly [parameter: string]: string },
  { name, workflow }: { name: string; workflow?: Workflow },
): string[] {
  const names = Object.keys(given);
  if (workflow === undefined) {
    return names.length === 0 ? [] : [`"${name}" is no workflow, so "with" has no use`];
  }
  const known = workflow.parameters.map((parameter) => parameter.name);
  return [
    ...names.filter((each) => !known.includes(each)).map((each) => unknownFault(each, known)),
    ...workflow.parameters.filter((parameter) =>
      parameter.fallback === undefined && !names.includes(parameter.name)
    ).map((parameter) =>
      `Parameter "${parameter.name}" of "${name}" has no value; give it in "with"`
    ),
    ...workflow.parameters.flatMap((parameter) => {
      const value = Object.hasOwn(given, parameter.name)
        ? plainText(given[parameter.name] ?? "")
        : undefined;
      const typed = value === undefined ? value : fitted(value, parameter);
      return typeof typed === "object" ? [typed.fault] : [];
    }),
  ];
}

/** A text that is the same whatever the expressions of a workflow come to; undefined for any other. */
function plainText(text: string): string | undefined {
  const { parts } = parseText(text);
  const plain = parts.filter((part) => typeof part === "string");
  return plain.length === parts.length ? plain.join("") : undefined;
}
