/** Where a character of a value stands in its YAML file: exact wherever the value stands there as it is, else the place of the value. */
import { FILE_START, type Position } from "../problems.ts";

const OPENING = "${{";

/** `at`: characters from the beginning of the value `text`, which begins at `start` in `file`. */
export function placeInText(file: string, start: Position, text: string, at: number): Position {
  const from = offsetOf(file, start);
  const open = text.lastIndexOf(OPENING, at);
  if (open === -1) {
    const begin = [from, from + 1].find((offset) => file.startsWith(text.slice(0, at), offset));
    return begin === undefined ? start : positionOf(file, begin + at);
  }
  let offset = from - 1;
  for (let nth = text.slice(0, open).split(OPENING).length; nth > 0; nth--) {
    offset = file.indexOf(OPENING, offset + 1);
    if (offset === -1) return start;
  }
  const isSame = file.startsWith(text.slice(open, at), offset);
  return positionOf(file, isSame ? offset + at - open : offset);
}

function offsetOf(file: string, { line, column }: Position): number {
  let offset = 0;
  for (let passed = 1; passed < line; passed++) {
    const end = file.indexOf("\n", offset);
    if (end === -1) break;
    offset = end + 1;
  }
  return offset + column - 1;
}

function positionOf(file: string, offset: number): Position {
  const before = file.slice(0, offset);
  const line = before.split("\n").length;
  const position = { line, column: offset - before.lastIndexOf("\n") };
  return position.column > 0 ? position : FILE_START;
}
