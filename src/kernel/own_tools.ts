/** Tools that rnix has itself and a process was granted: where their device is mounted in the process's own view, and what each of them is. */
import type { EffectClass } from "../base/effect.ts";
import { riskOf } from "../policy/tool_rules.ts";
import type { Device, ToolDefinition } from "../vfs/device.ts";
import type { ToolBinding } from "./tool_table.ts";

export interface OwnMount {
  /** Such as `/dev/fs`; the same for every process. */
  path: string;
  /** A node `tools/{name}` for each of `tools`. */
  device: Device;
  tools: readonly { definition: ToolDefinition; effect: EffectClass }[];
  /** Results over this many tokens are cut; undefined: never. */
  outputTokensMax: number | undefined;
}

/** Its tools, ready to be called. */
export function ownBindings({ path, tools, outputTokensMax }: OwnMount): ToolBinding[] {
  return tools.map(({ definition, effect }) => {
    const { name } = definition;
    const node = `${path}/tools/${encodeURIComponent(name)}`;
    const risk = riskOf({ effects: { [name]: effect }, risk: {}, sensitive: [] }, name);
    return {
      definition,
      server: undefined,
      device: node,
      path: node,
      effect,
      risk,
      sensitive: false,
      outputTokensMax,
    };
  });
}
