/** Durations as people write them (`500ms`, `30s`, `1h30m`, `30d`) to milliseconds, and back. */

const UNIT_MS = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;
const DAY_MS = 24 * UNIT_MS.h;
const WHOLE = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?$/;

/** What a duration looks like, for error messages. */
export const DURATION_EXAMPLES = "500ms, 30s, 10m or 1h30m";

/** Milliseconds; undefined when `text` isn't a duration. Each unit at most once, largest first; seconds may have a fraction. */
export function parseDuration(text: string): number | undefined {
  const match = WHOLE.exec(text);
  if (match === null || text === "") return undefined;
  const [days, hours, minutes, seconds, milliseconds] = match.slice(1).map((part) =>
    Number(part ?? 0)
  );
  const total = (days ?? 0) * DAY_MS + (hours ?? 0) * UNIT_MS.h + (minutes ?? 0) * UNIT_MS.m +
    (seconds ?? 0) * UNIT_MS.s +
    (milliseconds ?? 0);
  return Number.isSafeInteger(Math.round(total)) ? Math.round(total) : undefined;
}

/** A text that `parseDuration` reads as the same number: `90000` gives `1m30s`. Fractions of a millisecond are dropped. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.trunc(ms));
  let text = "";
  for (const [unit, unitMs] of Object.entries(UNIT_MS)) {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    if (count > 0) text += `${count}${unit}`;
  }
  return text === "" ? "0s" : text;
}
