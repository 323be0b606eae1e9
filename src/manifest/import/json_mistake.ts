/** Where a text stops being JSON: the parser of the language doesn't always say. */

const SPACE = /\s*/y;
const TOKEN =
  /"(?:[^"\\\n]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y;

type Expected = "value" | "first item" | "key" | "first key" | "colon" | "next";

/** Offset of the first token that can't stand where it stands; the text's length where it only ends too soon. */
export function jsonMistakeAt(text: string): number {
  const open: string[] = [];
  let expected: Expected = "value";
  for (let at = 0;;) {
    SPACE.lastIndex = at;
    at += SPACE.exec(text)?.[0].length ?? 0;
    if (at >= text.length) return text.length;
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text)?.[0];
    const after: Expected | undefined = token === undefined
      ? undefined
      : follow(token, expected, open);
    if (token === undefined || after === undefined) return at;
    expected = after;
    at += token.length;
  }
}

/** What comes after a token, `open` kept up to date; undefined where it can't stand. */
function follow(token: string, expected: Expected, open: string[]): Expected | undefined {
  const closes = (bracket: string) => token === bracket && open.pop() !== undefined;
  switch (expected) {
    case "first item":
      return closes("]") ? "next" : valueOf(token, open);
    case "value":
      return valueOf(token, open);
    case "first key":
      if (closes("}")) return "next";
      return token.startsWith('"') ? "colon" : undefined;
    case "key":
      return token.startsWith('"') ? "colon" : undefined;
    case "colon":
      return token === ":" ? "value" : undefined;
    case "next": {
      const inMapping = open.at(-1) === "{";
      if (token === "," && open.length > 0) return inMapping ? "key" : "value";
      return closes(inMapping ? "}" : "]") ? "next" : undefined;
    }
  }
}

function valueOf(token: string, open: string[]): Expected | undefined {
  if (token === "{" || token === "[") {
    open.push(token);
    return token === "{" ? "first key" : "first item";
  }
  return /^[\]},:]$/.test(token) ? undefined : "next";
}
