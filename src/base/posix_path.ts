/**
 * Paths as text, with `/` between names: what every command needs of `node:path`, whose loading alone takes as long as half an empty program.
 *
 * Each function gives what the one of `node:path/posix` gives. None looks at the disk.
 */

export function isAbsolute(path: string): boolean {
  return path.startsWith("/");
}

/** Without empty names, `.` and what `..` takes back. A slash at the end stays; nothing at all is `.`. */
function normalize(path: string): string {
  const absolute = isAbsolute(path);
  const text = namesOf(path, absolute).join("/");
  if (text === "") return absolute ? "/" : path.endsWith("/") && path !== "" ? "./" : ".";
  return `${absolute ? "/" : ""}${text}${path.endsWith("/") ? "/" : ""}`;
}

function namesOf(path: string, absolute: boolean): string[] {
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.length > 0 && names.at(-1) !== "..") names.pop();
    else if (!absolute) names.push(name);
  }
  return names;
}

/** The parts one below the other, made as short as they can be. */
export function join(...parts: string[]): string {
  return normalize(parts.filter((part) => part !== "").join("/"));
}

/** An absolute path: each part as seen from the one before, the first from the working folder, which is asked for only then. */
export function resolve(...parts: string[]): string {
  const from = parts.findLastIndex(isAbsolute);
  const used = from === -1 ? [Deno.cwd(), ...parts] : parts.slice(from);
  return `/${namesOf(used.join("/"), true).join("/")}`;
}

/** The way from one folder to another path, both as seen from the working folder. Empty if they are the same. */
export function relative(from: string, to: string): string {
  const start = namesOf(resolve(from), true);
  const end = namesOf(resolve(to), true);
  let shared = 0;
  while (shared < start.length && shared < end.length && start[shared] === end[shared]) shared += 1;
  return [...start.slice(shared).map(() => ".."), ...end.slice(shared)].join("/");
}

/** The path without its last name; `.` where it has but one. */
export function dirname(path: string): string {
  const end = path.replace(/\/+$/, "").lastIndexOf("/");
  if (end <= 0) return isAbsolute(path) ? "/" : ".";
  // Two slashes at the beginning may have a meaning of their own in POSIX.
  return end === 1 && isAbsolute(path) ? "//" : path.slice(0, end);
}

/** The last name of the path, without slashes after it. */
export function basename(path: string): string {
  const bare = path.replace(/\/+$/, "");
  return bare.slice(bare.lastIndexOf("/") + 1);
}
