/** Where something stands in a file, for what turns out to be wrong only after the file was read. The file is looked into again only then. */
import type { KeyPath, Problem } from "./problems.ts";
import { readYaml } from "./yaml_source.ts";

/** A place in a file. */
export type Place = Omit<Problem, "message">;

/** The place of the value at a path, or of a piece of its text; undefined where the file has no such path. */
export type PlaceOf = (path: KeyPath, piece?: string) => Place | undefined;

/** Places in a text. `file`: as shown to the user. */
export function placesIn(file: string, text: string): PlaceOf {
  return (path, piece) => {
    const source = readYaml(text);
    const position = piece === undefined ? source.placeOf(path) : source.pieceOf(path, piece);
    return position === undefined ? undefined : { file, ...position };
  };
}

/** `file:line:column`, as editors and terminals understand it. */
export function formatPlace({ file, line, column }: Place): string {
  return `${file}:${line}:${column}`;
}
