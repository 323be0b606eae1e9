/** Amounts as people read them. */
import { count } from "../base/amount.ts";

export { count };

/** `850ms`, `2.1s`, `3m04s`, `2h05m`. */
export function elapsed(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  const two = (number: number) => String(number).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
}

/** `1 turn`, `2 turns`. */
export function counted(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** US dollars; `-` when the price isn't known. */
export function cost(usd: number | null): string {
  if (usd === null) return "-";
  return `$${usd.toFixed(usd !== 0 && usd < 1 ? 4 : 2)}`;
}

/** `512 B`, `34.2 KiB`, `1.0 MiB`. */
export function bytes(number: number): string {
  if (number < 1024) return `${number} B`;
  const kib = number / 1024;
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}
