/**
 * The ways in which other programs write variables, turned into rnix's one: `${VAR}`, with `$$` for a dollar.
 *
 * `${env:VAR}` is understood everywhere. What a program replaces by something that rnix doesn't have stays as plain text, and is told.
 */
import { isVariableName, parseTemplate } from "../template.ts";

/** Which other forms a program replaces. `plain`: `${VAR}` and `${VAR:-default}`; `editor`: inputs and the names of folders. */
export type VariableStyle = "none" | "plain" | "editor" | "plain and editor";

/** A value after its conversion. */
export interface ConvertedText {
  /** A template of rnix. */
  text: string;
  /** What to know of it, a clause each. */
  notes: string[];
}

const FORM = /\$\{([^{}]*)\}/g;

/** Variable that stands for what an editor asks a person for. */
export function variableOfInput(id: string): string {
  const name = id.toUpperCase().replace(/[^A-Z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  return /^[A-Z]/.test(name) ? name : `INPUT_${name}`;
}

/** Converts one value. */
export function convertText(text: string, style: VariableStyle): ConvertedText {
  const notes: string[] = [];
  const parts: string[] = [];
  let end = 0;
  for (const match of text.matchAll(FORM)) {
    parts.push(escapedBefore(text.slice(end, match.index)));
    end = match.index + match[0].length;
    const converted = convertForm(match[1] ?? "", style);
    if (converted.note !== undefined) notes.push(converted.note);
    parts.push(converted.text ?? escaped(match[0]));
  }
  parts.push(escaped(text.slice(end)));
  return { text: parts.join(""), notes };
}

/** A literal text as a template. */
function escaped(text: string): string {
  return text.replace(/\$(?=[${A-Za-z_])/g, () => "$$");
}

/** The same where something follows that a dollar at the end could be read together with. */
function escapedBefore(text: string): string {
  return escaped(text).replace(/\$$/, () => "$$");
}

/** One `${…}`; no text where it stays as it is. */
function convertForm(inner: string, style: VariableStyle): { text?: string; note?: string } {
  const shown = `"\${${inner}}"`;
  const ofEnvironment = /^env:(.*)$/.exec(inner)?.[1];
  if (style !== "none" && ofEnvironment !== undefined && isVariableName(ofEnvironment)) {
    return { text: `\${${ofEnvironment}}` };
  }
  if (style.endsWith("editor")) {
    const input = /^input:(.+)$/.exec(inner)?.[1];
    if (input !== undefined) {
      const name = variableOfInput(input);
      return { text: `\${${name}}`, note: `${shown} is now the variable ${name}: export it` };
    }
    if (inner === "userHome") return { text: "${HOME}" };
    if (inner === "/" || inner === "pathSeparator") return { text: "/" };
  }
  if (style.startsWith("plain") && parseTemplate(`\${${inner}}`).faults.length === 0) {
    return { text: `\${${inner}}` };
  }
  return { note: `${shown} is no variable of rnix and stays as plain text` };
}
