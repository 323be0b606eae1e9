/** Adds entries to a mapping in YAML text and leaves the rest of it as it is, comments included. For text that `yaml_source.ts` found no mistakes in. */
import { type Document, isCollection, isMap, parseDocument, YAMLMap } from "yaml";
import type { JsonObject } from "../base/json.ts";

/** The text with these entries in the mapping under `key`, each in place of one of the same name. Throws for a text that has something else there. */
export function withEntries(
  text: string,
  key: string,
  entries: readonly { name: string; entry: JsonObject }[],
): string {
  const document: Document = parseDocument(text);
  if (document.contents === null) document.contents = emptyMap(document);
  if (!isMap(document.contents)) throw new Error("The top of the text is no mapping");
  const given = document.get(key);
  if (!isMap(given) && given !== undefined && given !== null) {
    throw new Error(`"${key}" is no mapping`);
  }
  if (!isMap(given)) document.set(key, emptyMap(document));
  const mapping = document.get(key);
  if (!isMap(mapping)) throw new Error(`"${key}" can't be made a mapping`);
  if (mapping.items.length === 0) mapping.flow = false;
  for (const { name, entry } of entries) {
    const node = document.createNode(entry);
    for (const list of ["args", "inherit_env"]) {
      const inner = node.get(list, true);
      if (isCollection(inner)) inner.flow = true;
    }
    mapping.set(document.createNode(name), node);
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function emptyMap(document: Document): YAMLMap {
  return new YAMLMap(document.schema);
}
