/** How far from the beginning each node of a workflow is. */

/** By node, from 1: the longest way to it along the nodes that it waits for. */
export function wavesOf(
  nodes: readonly { name: string; after: readonly string[] }[],
): Map<string, number> {
  const waves = new Map<string, number>();
  // Every round places at least one more of the nodes that don't wait for each other.
  for (let round = 0; round < nodes.length && waves.size < nodes.length; round++) {
    for (const { name, after } of nodes) {
      const before = after.map((each) => waves.get(each));
      if (before.some((wave) => wave === undefined)) continue;
      waves.set(name, 1 + Math.max(0, ...before.map((wave) => wave ?? 0)));
    }
  }
  return waves;
}
