/**
 * How long a regular expression may search at most, worked out from its form before it is used: a server gives both the pattern of a schema and the text that it is held against, and a search can't be stopped once it has begun.
 *
 * Every repeat of one thing multiplies the ways to go by the length of the text, every choice by its branches. A repeated group with a choice or a repeat of its own has no bound that helps, and neither has a reference back.
 */

const QUANTIFIER = /^(?:[*+?]|\{(\d+)(,(\d*))?\})\??/;

/** An upper bound of the ways in which the text of so many characters is gone through; Infinity where there is none. */
export function patternSteps(pattern: string, chars: number): number {
  const open: boolean[] = [];
  let steps = pattern.startsWith("^") ? 1 : chars + 1;
  // Whether the group that is being read, and the thing read last, can be matched in more than one way.
  let isGroupOpenEnded = false;
  let isLastOpenEnded = false;
  for (let at = 0; at < pattern.length;) {
    const char = pattern[at];
    const [quantifier, least = "", range, most = ""] = QUANTIFIER.exec(pattern.slice(at)) ?? [];
    if (char === "(") {
      open.push(isGroupOpenEnded);
      isGroupOpenEnded = false;
      at += pattern[at + 1] === "?" ? 2 : 1;
    } else if (char === ")") {
      isLastOpenEnded = isGroupOpenEnded;
      isGroupOpenEnded = open.pop() === true || isLastOpenEnded;
      at += 1;
    } else if (char === "|") {
      steps *= open.length === 0 ? 2 * (chars + 1) : 2;
      isGroupOpenEnded = true;
      at += 1;
    } else if (quantifier !== undefined) {
      const ways = waysOf(quantifier, { least, range, most }, chars);
      const isRepeat = !quantifier.startsWith("?");
      if (isRepeat && isLastOpenEnded) return Infinity;
      steps *= ways;
      isGroupOpenEnded ||= ways > 1;
      at += quantifier.length;
    } else {
      if (char === "\\" && /[1-9k]/.test(pattern[at + 1] ?? "")) return Infinity;
      at = char === "[" ? endOfClass(pattern, at) : at + (char === "\\" ? 2 : 1);
      isLastOpenEnded = false;
    }
  }
  return steps;
}

function waysOf(
  quantifier: string,
  { least, range, most }: { least: string; range: string | undefined; most: string },
  chars: number,
): number {
  if (quantifier.startsWith("?")) return 2;
  if (!quantifier.startsWith("{")) return chars + 1;
  if (range === undefined) return 1;
  return most === "" ? chars + 1 : Math.min(chars, Number(most) - Number(least)) + 1;
}

function endOfClass(pattern: string, start: number): number {
  let at = start + 1;
  while (at < pattern.length && pattern[at] !== "]") at += pattern[at] === "\\" ? 2 : 1;
  return at + 1;
}
