/**
 * What a person does on the VFS from outside of a run (`rnix ls`, `cat`, `write`, `stat`), and what it gives.
 *
 * Paths: `/proc/{pid}/…`, `/mnt/mcp/{pid}-{server}/…`, and in one process's own view (`pid`) also `/proc/self/…`, `/mnt/mcp/{server}/…` and `/dev/…`.
 */
import type { Json } from "./json.ts";

export type VfsOperation = "list" | "stat" | "read" | "write";

export interface VfsRequest {
  operation: VfsOperation;
  /** Absolute. */
  path: string;
  /** The process in whose view the path is; what isn't that process's own is PERMISSION then. */
  pid?: number;
  /** What is written. */
  input?: Json;
}

/** What a node is: a `tool` is called by a write, a `model` asked by programs alone. */
export type VfsKind = "folder" | "file" | "tool" | "model";

export interface VfsNode {
  path: string;
  kind: VfsKind;
  writable: boolean;
  /** Of a tool. */
  effect?: string;
  /** The process that it belongs to. */
  pid?: number;
}

export type VfsAnswer =
  | { kind: "names"; path: string; names: string[] }
  | { kind: "node"; node: VfsNode }
  | { kind: "content"; path: string; text: string }
  /** What a call gave; `call` is its name in the run's journal. */
  | {
    kind: "result";
    path: string;
    call: string;
    outcome: "ok" | "error";
    /** Its text, or the JSON of what isn't text. */
    text: string;
    content: Json[];
    structured?: Json;
  };

/** Where a path leads, before anybody is asked. */
export type VfsPlace =
  /** `pid`: of whom, where it is told; `name`: the entry of `/proc/{pid}`, and what is below it. */
  | { area: "proc"; pid?: number; name?: string; rest: string }
  /** `owner` and `server` of `/mnt/mcp/{owner}-{server}`; an own view has only `mount`. */
  | { area: "mcp"; mount?: string; owner?: number }
  | { area: "dev" }
  /** `/`, `/mnt`. */
  | { area: "above"; names: string[] }
  | { area: "nowhere" };

/** A resource, whose URI may stand there as it is. */
const RESOURCE = /^(\/+mnt\/+mcp\/+[^/]+\/+resources\/+)([^/].*)$/s;

/** The path without what means nothing: doubled and trailing slashes, `.`; `..` goes up. What names a resource is left as it is. */
export function plainPath(path: string): string {
  const [, folder, uri] = RESOURCE.exec(path) ?? [];
  if (folder !== undefined && uri !== undefined) return `${plainPath(folder)}/${uri}`;
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

/** Where a plain path leads; `self`: whose view it is. */
export function placeOf(path: string, self: number | undefined): VfsPlace {
  const [top = "", second, third, ...rest] = path.split("/").slice(1);
  switch (top) {
    case "":
      return {
        area: "above",
        names: self === undefined ? ["mnt", "proc"] : ["dev", "mnt", "proc"],
      };
    case "proc":
      return procPlace(second, third, { rest: rest.join("/"), self });
    case "mnt":
      if (second === undefined) return { area: "above", names: ["mcp"] };
      if (second !== "mcp") return { area: "nowhere" };
      return third === undefined ? { area: "mcp" } : mountPlace(third);
    case "dev":
      return { area: "dev" };
    default:
      return { area: "nowhere" };
  }
}

function procPlace(
  who: string | undefined,
  name: string | undefined,
  { rest, self }: { rest: string; self: number | undefined },
): VfsPlace {
  const below = { ...(name === undefined ? {} : { name }), rest };
  if (who === undefined) return { area: "proc", rest: "" };
  if (/^\d+$/.test(who)) return { area: "proc", pid: Number(who), ...below };
  if (who !== "self") return { area: "nowhere" };
  return { area: "proc", ...(self === undefined ? {} : { pid: self }), name: name ?? "", rest };
}

function mountPlace(mount: string): VfsPlace {
  const owner = /^(\d+)-/.exec(mount)?.[1];
  return { area: "mcp", mount, ...(owner === undefined ? {} : { owner: Number(owner) }) };
}

/** Who answers: the process at work (`live`), the state folder (`stored`), or the process where it is at work (`either`). */
export function answererOf({ operation, path, pid }: VfsRequest): "live" | "stored" | "either" {
  const place = placeOf(plainPath(path), pid);
  if (place.area === "dev") return "live";
  if (place.area === "mcp") return place.mount === undefined ? "stored" : "live";
  if (place.area !== "proc" || place.pid === undefined) return "stored";
  if (place.name === "fd") return "either";
  if (place.name === "results" && operation === "write") return "live";
  return place.name === "mounts" && operation === "read" ? "either" : "stored";
}
