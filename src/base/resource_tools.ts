/**
 * The tools by which a model has a server's resources are rnix's own: they go by MCP's names for what they do, and aren't counted among the tools of the server, wherever these are counted.
 */

/** Names in a manifest, and of a mount's tools in the journal. */
export const RESOURCE_TOOLS = { list: "resources/list", read: "resources/read" } as const;

/** What a server has, of all that is offered of it by name. */
export interface ServerCount {
  /** Its own tools. */
  tools: number;
  /** Present where its resources are offered, too. */
  resources?: true;
}

/** Counts a server's tools by their names. */
export function countTools(tools: { readonly [name: string]: unknown }): ServerCount {
  const { list, read } = RESOURCE_TOOLS;
  const names = Object.keys(tools);
  const own = names.filter((name) => name !== list && name !== read).length;
  return { tools: own, ...(own === names.length ? {} : { resources: true }) };
}

/** `13 tools`, `13 tools and resources`. */
export function countText({ tools, resources }: ServerCount): string {
  const own = `${tools} ${tools === 1 ? "tool" : "tools"}`;
  return resources === true ? `${own} and resources` : own;
}
