/**
 * One server of another program's configuration as an entry of `mcp.yaml`.
 *
 * Every key is either carried over, or told in a note: nothing gets lost in silence. Notes never hold a value.
 */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { isVariableName, parseTemplate } from "../template.ts";
import { convertText, type VariableStyle } from "./variables.ts";

/** An entry, unless the server can't be had at all. */
export interface ConvertedEntry {
  entry?: JsonObject;
  /** A clause each. */
  notes: string[];
}

/** Names under which programs say how a server is reached; each with rnix's. */
const TRANSPORTS: { readonly [name: string]: string } = {
  "stdio": "stdio",
  "local": "stdio",
  "sse": "sse",
  "http": "http",
  "streamable-http": "http",
  "streamable_http": "http",
  "streamablehttp": "http",
  "remote": "auto",
};

/** Keys that only say what the others say already, or concern the other program's own windows. */
const SAYS_NOTHING: readonly string[] = ["name", "description", "$schema"];

/** Keys whose values are units or lists that differ between programs, or that rnix has nothing for. */
const INSTEAD: { readonly [key: string]: string } = {
  "timeout": "its unit differs between programs; write timeout, such as 30s",
  "alwaysAllow": "rnix asks by risk, not by tool",
  "autoApprove": "rnix asks by risk, not by tool",
  "trust": "rnix asks by risk, not by server",
  "envFile": "export what is in that file, and name the variables in inherit_env",
  "excludeTools": "name the tools that are allowed in tools.allow",
  "disabledTools": "name the tools that are allowed in tools.allow",
  "disabled_tools": "name the tools that are allowed in tools.allow",
};

const SECRET_NAME =
  /key|token|secret|passw|credential|auth(?!ors?$)|cookie|session|(^|[_-])(pat|pwd)($|[_-])/i;
const SECRET_ARGUMENT = /^--?[\w-]*(key|token|secret|password)[\w-]*=./i;
const SECRET_PARAMETER = /[?&][^=&#]*(key|token|secret|password|sig)[^=&#]*=[^&#]/i;

const IN_WORKSPACE = /^\$\{workspaceFolder\}\/?$/;

/** Converts what a program keeps under a server's name. */
export function convertEntry(server: JsonObject, style: VariableStyle): ConvertedEntry {
  return new Conversion(server, style).result();
}

class Conversion {
  readonly #server: JsonObject;
  readonly #style: VariableStyle;
  readonly #notes: string[] = [];
  readonly #seen = new Set<string>(SAYS_NOTHING);
  readonly #entry: JsonObject = {};

  constructor(server: JsonObject, style: VariableStyle) {
    this.#server = server;
    this.#style = style;
  }

  result(): ConvertedEntry {
    const transport = this.#transport();
    if (transport === undefined) return { notes: this.#notes };
    const url = this.#take("url", "serverUrl", "httpUrl", "uri");
    const command = this.#take("command", "cmd");
    const isStarted = transport === "stdio" && command !== undefined;
    if (typeof url === "string" && url !== "" && !isStarted) this.#remote(url, transport);
    else if (command !== undefined) this.#started(command);
    else {
      this.#notes.push("it has neither a command nor a url; left out");
      return { notes: this.#notes };
    }
    this.#limits();
    this.#rest();
    return { entry: this.#entry, notes: this.#notes };
  }

  /** `auto` where nothing is said. */
  #transport(): string | undefined {
    const given = this.#take("type", "transport", "transportType", "transport_type");
    if (given === undefined) return this.#server["httpUrl"] === undefined ? "auto" : "http";
    const name = typeof given === "string" ? given.toLowerCase() : "";
    const known = Object.hasOwn(TRANSPORTS, name) ? TRANSPORTS[name] : undefined;
    if (known === undefined) {
      this.#notes.push(`transport ${JSON.stringify(given)} is unknown; left out`);
    }
    return known;
  }

  #started(command: Json): void {
    const line = Array.isArray(command) ? command : [command];
    const [program, ...first] = this.#texts("command", line);
    const args = [...first, ...this.#texts("args", this.#take("args", "arguments") ?? [])];
    const name = program ?? "";
    this.#entry["command"] = inHome(name);
    if (args.length > 0) this.#entry["args"] = args;
    if (/^[^/~$]+ /.test(name) && args.length === 0) {
      this.#notes.push(
        "command is the name of one program; if it is a command line, split it into args",
      );
    }
    if (args.some((arg) => SECRET_ARGUMENT.test(arg) && isLiteral(arg))) {
      this.#notes.push("an argument looks like a secret that is written out; better as a ${VAR}");
    }
    this.#environment();
    this.#folder(name);
  }

  #environment(): void {
    const env = this.#mapping("env", "environment");
    const taken = Object.entries(env).filter(([name]) => {
      if (isVariableName(name) && !name.startsWith("RNIX_")) return true;
      this.#notes.push(`env: ${JSON.stringify(name)} can't be the name of a variable; left out`);
      return false;
    });
    if (taken.length > 0) this.#entry["env"] = Object.fromEntries(taken);
    for (const [name, value] of taken) {
      if (!SECRET_NAME.test(name) || !isLiteral(value)) continue;
      this.#notes.push(`env.${name} is written out; better as \${${name}}`);
    }
    const inherited = this.#take("env_vars");
    if (inherited !== undefined) {
      const names = this.#texts("env_vars", inherited).filter(isVariableName);
      if (names.length > 0) this.#entry["inherit_env"] = names;
    }
  }

  #folder(program: string): void {
    const given = this.#take("cwd", "workingDirectory");
    const cwd = typeof given === "string" ? given : undefined;
    if (cwd !== undefined && !this.#inWorkspace) {
      this.#entry["cwd"] = inHome(this.#text("cwd", cwd));
    }
    const isRelative = (path: string) => !/^[/~$]/.test(path);
    if (cwd !== undefined && this.#entry["cwd"] !== undefined && isRelative(cwd)) {
      this.#notes.push("cwd is relative: it starts from the folder of mcp.yaml now");
    }
    if (program.includes("/") && isRelative(program)) {
      this.#notes.push("command is a relative path: it starts from the folder of mcp.yaml now");
    }
  }

  #remote(url: string, transport: string): void {
    this.#entry["url"] = this.#text("url", url);
    if (transport === "http" || transport === "sse") this.#entry["transport_type"] = transport;
    if (SECRET_PARAMETER.test(url) && isLiteral(this.#entry["url"])) {
      this.#notes.push("url holds a parameter that looks like a secret; better as a ${VAR}");
    }
    const headers = this.#headers();
    if (Object.keys(headers).length > 0) this.#entry["headers"] = headers;
    for (const [name, value] of Object.entries(headers)) {
      if (!SECRET_NAME.test(name) || !isLiteral(value)) continue;
      this.#notes.push(`headers.${name} is written out; better as a \${VAR}`);
    }
    for (const key of ["command", "cmd", "args", "env", "cwd"]) {
      const left = this.#take(key);
      if (left === undefined || left === "" || isEmpty(left)) continue;
      this.#notes.push(`"${key}" is for a server that is started; left out beside a url`);
    }
  }

  #headers(): { [name: string]: string } {
    const headers = { ...this.#mapping("headers", "http_headers", "requestHeaders") };
    for (const [name, variable] of Object.entries(this.#mapping("env_http_headers"))) {
      if (isVariableName(variable)) headers[name] = `\${${variable}}`;
    }
    const bearer = this.#take("bearer_token_env_var");
    if (typeof bearer === "string" && isVariableName(bearer)) {
      headers["Authorization"] = `Bearer \${${bearer}}`;
    }
    return headers;
  }

  #limits(): void {
    const seconds = (key: string) => {
      const value = this.#take(key);
      return typeof value === "number" && value > 0 ? value * 1000 : undefined;
    };
    const milliseconds = this.#take("startup_timeout_ms");
    const startup = seconds("startup_timeout_sec") ??
      (typeof milliseconds === "number" && milliseconds > 0 ? milliseconds : undefined);
    const request = seconds("tool_timeout_sec");
    if (startup !== undefined) this.#entry["startup_timeout"] = `${Math.ceil(startup)}ms`;
    if (request !== undefined) this.#entry["timeout"] = `${Math.ceil(request)}ms`;
    const allowed = this.#take("enabled_tools", "includeTools");
    if (allowed !== undefined) this.#entry["tools"] = { allow: this.#texts("tools", allowed) };
    const required = this.#take("required");
    if (typeof required === "boolean") this.#entry["required"] = required;
  }

  /** Keys that were not looked at. */
  #rest(): void {
    const off = this.#take("disabled") === true || this.#take("enabled") === false;
    if (off) {
      this.#notes.push("it was disabled; here a server is mounted only where a manifest names it");
    }
    for (const key of Object.keys(this.#server)) {
      if (this.#seen.has(key)) continue;
      const instead = Object.hasOwn(INSTEAD, key) ? INSTEAD[key] : undefined;
      const why = instead === undefined ? "rnix has nothing for it" : instead;
      this.#notes.push(`${JSON.stringify(key)} is left out: ${why}`);
    }
  }

  /** The first of these keys that is there; more than one is told by `#rest`. */
  #take(...keys: string[]): Json | undefined {
    for (const key of keys) {
      const value = Object.hasOwn(this.#server, key) ? this.#server[key] : undefined;
      if (value === undefined || value === null) {
        this.#seen.add(key);
        continue;
      }
      this.#seen.add(key);
      return value;
    }
    return undefined;
  }

  #mapping(...keys: string[]): { [name: string]: string } {
    const value = this.#take(...keys);
    if (value === undefined) return {};
    if (!isJsonObject(value)) {
      this.#notes.push(`${JSON.stringify(keys[0])} is no mapping; left out`);
      return {};
    }
    const texts = Object.entries(value).flatMap(([name, member]): [string, string][] => {
      const text = asText(member);
      const key = `${keys[0]}.${name}`;
      if (text !== undefined) {
        return [[name, keys[0] === "env" ? this.#local(key, text) : this.#text(key, text)]];
      }
      this.#notes.push(`${keys[0]}.${name} has no value that is text; left out`);
      return [];
    });
    return Object.fromEntries(texts);
  }

  #texts(key: string, value: Json): string[] {
    if (!Array.isArray(value)) {
      this.#notes.push(`${JSON.stringify(key)} is no list; left out`);
      return [];
    }
    return value.flatMap((item, index) => {
      const text = asText(item);
      const place = `${key}[${index}]`;
      if (text !== undefined) {
        return [key === "args" ? this.#local(place, text) : this.#text(place, text)];
      }
      this.#notes.push(`${key}[${index}] is no text; left out`);
      return [];
    });
  }

  /** Whether the server is started in the folder that one works in, as it is in rnix without `cwd`. */
  get #inWorkspace(): boolean {
    const { cwd } = this.#server;
    return typeof cwd !== "string" || (this.#style.endsWith("editor") && IN_WORKSPACE.test(cwd));
  }

  /** An argument or the value of a variable: what starts with the working folder may be relative to it. */
  #local(key: string, value: string): string {
    const inside = /^\$\{workspaceFolder\}(?=\/|$)/;
    if (!this.#style.endsWith("editor") || !this.#inWorkspace || !inside.test(value)) {
      return this.#text(key, value);
    }
    this.#notes.push(`${key}: "\${workspaceFolder}" is "." now, the folder of the run`);
    return this.#text(key, value.replace(inside, "."));
  }

  #text(key: string, value: string): string {
    const { text, notes } = convertText(value, this.#style);
    this.#notes.push(...notes.map((note) => `${key}: ${note}`));
    return text;
  }
}

function asText(value: Json): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** Whether a template has no variable, and says something. */
function isLiteral(template: Json | undefined): boolean {
  if (typeof template !== "string" || template === "") return false;
  return parseTemplate(template).parts.every((part) => typeof part === "string");
}

function isEmpty(value: Json): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** `~/x` is not expanded in rnix. */
function inHome(path: string): string {
  return path.startsWith("~/") ? `\${HOME}${path.slice(1)}` : path;
}
