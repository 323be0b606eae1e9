/** Strings inside an entry: finding the long ones that go to blobs, and changing strings by their JSON pointer (RFC 6901). */

/** Longest string, in bytes of UTF-8, that stays in its line. */
export const INLINE_BYTES_MAX = 64 * 1024;

/** A string and where it stands. */
export interface LocatedText {
  pointer: string;
  text: string;
}

/** The strings of `value` (keys aside) that are longer than a line holds. */
export function longStrings(value: unknown): LocatedText[] {
  const found: LocatedText[] = [];
  collect(value, "", found);
  return found;
}

function collect(value: unknown, pointer: string, found: LocatedText[]): void {
  if (typeof value === "string") {
    if (isLong(value)) found.push({ pointer, text: value });
    return;
  }
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      if (mayBeLong(item)) collect(item, `${pointer}/${index}`, found);
    }
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (mayBeLong(member)) collect(member, `${pointer}/${escapeKey(key)}`, found);
  }
}

/** Spares the making of pointers for what can't hold a long string. */
function mayBeLong(value: unknown): boolean {
  return typeof value === "string"
    ? value.length * 3 > INLINE_BYTES_MAX
    : typeof value === "object" && value !== null;
}

function isLong(text: string): boolean {
  if (text.length * 3 <= INLINE_BYTES_MAX) return false;
  return text.length > INLINE_BYTES_MAX || new TextEncoder().encode(text).length > INLINE_BYTES_MAX;
}

function escapeKey(key: string): string {
  return key.includes("~") || key.includes("/")
    ? key.replaceAll("~", "~0").replaceAll("/", "~1")
    : key;
}

/** `value` with each string replaced by what `change` gives for it, keys made well-formed; parts without a change keep their identity. */
export function mapText<T>(value: T, change: (text: string, pointer: string) => string): T {
  const mapped = mapValue(value, change, "");
  return isSameShape<T>(mapped) ? mapped : value;
}

/** Mapping strings to strings leaves the type as it was; this tells the compiler so. */
function isSameShape<T>(mapped: unknown): mapped is T {
  return mapped !== undefined;
}

function mapValue(
  value: unknown,
  change: (text: string, pointer: string) => string,
  pointer: string,
): unknown {
  if (typeof value === "string") return change(value, pointer);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item, index) => mapValue(item, change, `${pointer}/${index}`));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  let changed = false;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => {
    const newMember = mapValue(member, change, `${pointer}/${escapeKey(key)}`);
    const newKey = key.toWellFormed();
    changed ||= newMember !== member || newKey !== key;
    return [newKey, newMember];
  });
  return changed ? Object.fromEntries(members) : value;
}
