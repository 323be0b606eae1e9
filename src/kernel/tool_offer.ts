/**
 * Which tools of all servers a model is offered: providers refuse a whole request for one schema that they don't take, or for one tool too many.
 *
 * Tools that can't be offered are set aside with their reason, the rest work. Over the limit on their number, the first ones stay: servers in the manifest's order, tools by name; so the choice is the same at every start.
 */
import { isAllowed } from "../policy/tool_rules.ts";
import type { ToolDefinition } from "../vfs/device.ts";
import type { MountFacts, MountSpec } from "./mount.ts";

/** Places kept free for tools of rnix itself: they come when they are needed. */
export const OWN_TOOLS_MAX = 1;

/** A server with what it lists, or with what of it is offered. */
export interface Offer {
  spec: MountSpec;
  facts: MountFacts;
}

/** What a model's provider takes. */
export interface OfferRules {
  provider: string;
  /** Why a tool can't be offered; undefined when it can. */
  refuses(tool: ToolDefinition): string | undefined;
  /** Tools of one request; undefined for no limit. */
  toolsMax: number | undefined;
  /** Tools of rnix itself that are offered from the start. */
  ownTools: number;
}

/** What is offered, in the order of `listed`. */
export interface Offered {
  offers: Offer[];
  /** Tools over the limit, by server. */
  surplus: { server: string; tools: string[] }[];
}

/** Sets aside what the provider wouldn't take. */
export function offerTools(listed: readonly Offer[], rules: OfferRules): Offered {
  let left = rules.toolsMax === undefined
    ? Infinity
    : rules.toolsMax - OWN_TOOLS_MAX - rules.ownTools;
  const surplus: Offered["surplus"] = [];
  const offers = listed.map(({ spec, facts }): Offer => {
    const setAside: [string, string][] = [];
    const over: string[] = [];
    for (const tool of facts.tools) {
      if (!isAllowed(spec.rules, tool.name)) continue;
      const reason = rules.refuses(tool);
      if (reason !== undefined) setAside.push([tool.name, reason]);
      else if (left > 0) left -= 1;
      else over.push(tool.name);
    }
    if (over.length > 0) surplus.push({ server: spec.server, tools: over });
    const why = `Provider "${rules.provider}" takes at most ${rules.toolsMax} tools`;
    return { spec, facts: without(facts, [...setAside, ...over.map((name) => [name, why])]) };
  });
  return { offers, surplus };
}

function without(facts: MountFacts, reasons: readonly (readonly string[])[]): MountFacts {
  if (reasons.length === 0) return facts;
  const setAside = { ...facts.setAside, ...Object.fromEntries(reasons) };
  const tools = facts.tools.filter((tool) => !Object.hasOwn(setAside, tool.name));
  return { ...facts, tools, setAside };
}

/** The one sentence on all tools over the limit, with what to do. */
export function surplusNotice(surplus: Offered["surplus"], rules: OfferRules): string {
  const count = surplus.reduce((sum, { tools }) => sum + tools.length, 0);
  const servers = surplus.map(({ server, tools }) => `${tools.length} of ${server}`).join(", ");
  return `${count} ${
    count === 1 ? "tool is" : "tools are"
  } set aside (${servers}): provider "${rules.provider}" takes at most ${rules.toolsMax} tools; name those that are needed under tools.allow of their servers`;
}
