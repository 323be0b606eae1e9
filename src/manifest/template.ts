/**
 * The one rule for variables in a manifest: `${VAR}` must be set, `${VAR:-default}` need not be (and an empty value counts as unset there), `$$` is a dollar.
 *
 * A dollar before anything but `{`, `$`, a letter or `_` is a plain dollar (`^x$`, `$(date)`, `$1`). What looks like a variable of another dialect (`$VAR`, `${env:VAR}`) is a mistake, never passed on as it is.
 */

/** A piece of a template: plain text, or a variable. */
export type TemplatePart = string | { name: string; fallback?: string };

export interface Template {
  parts: TemplatePart[];
  /** What is wrong with it, one sentence each; empty for a good one. */
  faults: string[];
}

/** What a template becomes in an environment. */
export interface Expansion {
  text: string;
  /** Variables without a value or default, each once. */
  missing: string[];
  /** Values that came from the environment, by variable. */
  used: { name: string; value: string }[];
}

const TOKEN = /\$\$|\$\{([^}]*)\}|\$\{|\$[A-Za-z_][A-Za-z0-9_]*/g;
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;

/** Whether a text can be the name of an environment variable. */
export function isVariableName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

/** Splits a text at its variables. */
export function parseTemplate(text: string): Template {
  const parts: TemplatePart[] = [];
  const faults: string[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[0] === "$$") parts.push("$");
    else if (match[0] === "${") faults.push('"${" without its "}"; write "$${" for the plain text');
    else if (match[1] === undefined) {
      const name = match[0].slice(1);
      faults.push(
        `"$${name}" is not a variable here; write "\${${name}}", or "$$${name}" for the plain text`,
      );
    } else {
      const variable = parseVariable(match[1]);
      if (typeof variable === "string") faults.push(variable);
      else parts.push(variable);
    }
  }
  parts.push(text.slice(end));
  return { parts: parts.filter((part) => part !== ""), faults };
}

/** A variable, or what is wrong with it. */
function parseVariable(inner: string): { name: string; fallback?: string } | string {
  const match = VARIABLE.exec(inner);
  const name = match?.[1];
  if (name === undefined) {
    return `"\${${inner}}" is not understood; use "\${NAME}" or "\${NAME:-default}"`;
  }
  const fallback = match?.[2];
  if (fallback?.includes("${")) return `The default of "\${${name}}" can't hold another variable`;
  return fallback === undefined ? { name } : { name, fallback };
}

/** Fills in a template. Faults are a matter of parsing; here they vanish. */
export function expandTemplate(text: string, env: { [name: string]: string }): Expansion {
  const missing = new Set<string>();
  const used: Expansion["used"] = [];
  const pieces = parseTemplate(text).parts.map((part) => {
    if (typeof part === "string") return part;
    const value = Object.hasOwn(env, part.name) ? env[part.name] : undefined;
    if (value !== undefined && (value !== "" || part.fallback === undefined)) {
      used.push({ name: part.name, value });
      return value;
    }
    if (part.fallback === undefined) missing.add(part.name);
    return part.fallback ?? "";
  });
  return { text: pieces.join(""), missing: [...missing], used };
}
