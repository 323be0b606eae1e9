/** "Did you mean": the known word that is fewest typing mistakes away from a wrong one. */

/** Typing mistakes between two words: a letter added, lost, changed, or two neighbours swapped. */
export function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const line = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let best = Math.min(
        (above[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (above[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1];
      if (swapped) best = Math.min(best, (before[column - 2] ?? 0) + 1);
      line.push(best);
    }
    before = above;
    above = line;
  }
  return above[to.length] ?? 0;
}

const WORD_CHARS_MAX = 64;

/** The nearest of `known` to `word`, case and `-`/`_` aside; undefined when none is near enough to be a typing mistake. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > WORD_CHARS_MAX) return undefined;
  const plain = (text: string) => text.toLowerCase().replaceAll("-", "_");
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of known) {
    const distance = editDistance(plain(word), plain(candidate));
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}
