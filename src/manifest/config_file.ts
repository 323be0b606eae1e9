/**
 * `config.yaml` text to checked settings, or all its mistakes at once, each with line and column.
 *
 * A project's file comes with a clone, so it may only set what can't widen anything:
 *
 * | key | in the project's file |
 * |---|---|
 * | `daemon`, `gc`, `checkpoint` | refused: they are about all runs of the user, and one of them deletes |
 * | `on_unknown` | `ask` and `fail` alone: `retry` and `skip` would go on without a person |
 * | `ping` | taken: it says how patient to be with this project's servers, within the same bounds |
 *
 * `approval` is designed and not built, so it is refused everywhere.
 */
import { z } from "zod";
import { TIMER_MS_MAX } from "../base/clock.ts";
import { DURATION_EXAMPLES, formatDuration, parseDuration } from "../base/duration.ts";
import { ON_UNKNOWN, type OnUnknown } from "../base/effect.ts";
import { isMapping } from "./not_built.ts";
import { FILE_START, type KeyPath, type Problems } from "./problems.ts";
import { type Add, addIssues, checkShape, describe } from "./schema_issues.ts";
import { readYaml, type YamlSource } from "./yaml_source.ts";

const PING_MS_MIN = 1_000;
const PING_MS_MAX = 3_600_000;
const PING_MISSES_MAX = 100;
/** No larger: a millisecond count of a hundred years. */
const RETENTION_MS_MAX = 100 * 366 * 24 * 3_600_000;
/** What switches a limit of `gc` off. */
const NEVER = "never";

/** Whose file it is. */
export type ConfigScope = "user" | "project";

/** What a file sets; what it leaves out is as another file or the default says. */
export interface ConfigFile {
  /** How long a daemon without anything to do stays, milliseconds. */
  idleTimeoutMs?: number;
  /** Age at which ended runs are removed, milliseconds; Infinity: never. */
  retentionMs?: number;
  /** Ended runs that may stay; Infinity: all. */
  maxRuns?: number;
  /** Least growth of a journal between two checkpoints, bytes. */
  checkpointBytes?: number;
  /** For manifests that don't say. */
  onUnknown?: OnUnknown;
  ping: { intervalMs?: number; timeoutMs?: number; misses?: number };
}

function durationOf(leastMs: number, mostMs: number, word?: string) {
  return z.unknown().transform((value, context) => {
    if (word !== undefined && value === word) return Infinity;
    const ms = typeof value === "string" ? parseDuration(value) : undefined;
    if (ms !== undefined && ms >= leastMs && ms <= mostMs) return ms;
    const or = word === undefined ? "" : ` or ${word}`;
    const wanted = ms === undefined
      ? `Expected a duration such as ${DURATION_EXAMPLES}${or}`
      : `Expected ${formatDuration(leastMs)} to ${formatDuration(mostMs)}${or}`;
    context.addIssue({ code: "custom", message: `${wanted}, got ${describe(value)}` });
    return z.NEVER;
  });
}

const maxRuns = z.unknown().transform((value, context) => {
  if (value === NEVER) return Infinity;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  const message = `Expected a whole number from 0 on or ${NEVER}, got ${describe(value)}`;
  context.addIssue({ code: "custom", message });
  return z.NEVER;
});

const timerMsMax = Math.floor(TIMER_MS_MAX / 3_600_000) * 3_600_000;
const daemonSchema = z.strictObject({ idle_timeout: durationOf(1, timerMsMax).optional() });
const gcSchema = z.strictObject({
  retention: durationOf(1, RETENTION_MS_MAX, NEVER).optional(),
  max_runs: maxRuns.optional(),
});
const pingSchema = z.strictObject({
  interval: durationOf(PING_MS_MIN, PING_MS_MAX).optional(),
  timeout: durationOf(PING_MS_MIN, PING_MS_MAX).optional(),
  misses: z.int().min(1).max(PING_MISSES_MAX).optional(),
});
const configSchema = z.strictObject({
  daemon: daemonSchema.optional(),
  gc: gcSchema.optional(),
  checkpoint: z.int().min(1).optional(),
  on_unknown: z.enum(ON_UNKNOWN).optional(),
  ping: pingSchema.optional(),
});

const NOT_BUILT = "approval";
const KNOWN_KEYS: { readonly [path: string]: readonly string[] } = {
  "": Object.keys(configSchema.shape),
  "daemon": Object.keys(daemonSchema.shape),
  "gc": Object.keys(gcSchema.shape),
  "ping": Object.keys(pingSchema.shape),
};

/** Keys that are the user's own. */
const USERS_OWN = ["daemon", "gc", "checkpoint"] as const;
/** What a project may set `on_unknown` to. */
const PROJECT_ON_UNKNOWN: readonly unknown[] = ["ask", "fail"];

export interface ParseConfigOptions {
  /** How the file is named in messages. */
  file: string;
  scope: ConfigScope;
}

/** Parses the file. Mistakes go to `problems`; then nothing is given. Never throws. */
export function parseConfig(
  text: string,
  options: ParseConfigOptions,
  problems: Problems,
): ConfigFile | undefined {
  const before = problems.count;
  const add: Add = (position, message) => problems.add(options.file, position, message);
  const source = readYaml(text);
  for (const { position, message } of source.mistakes) add(position, message);
  if (source.value === undefined) return undefined;
  if (source.value === null) return { ping: {} };
  if (!isMapping(source.value)) {
    add(source.valueAt([]), `Expected a mapping of keys, got ${describe(source.value)}`);
    return undefined;
  }
  const { [NOT_BUILT]: _notBuilt, ...file } = source.value;
  if (Object.hasOwn(source.value, NOT_BUILT)) {
    add(() => source.keyAt([NOT_BUILT]), `"${NOT_BUILT}" is not built yet; remove it`);
  }
  const parsed = checkShape(configSchema, file);
  if (parsed === undefined) {
    add(FILE_START, "So many mistakes that they can't be listed");
    return undefined;
  }
  if (!parsed.success) addIssues(parsed.error.issues, source, { add, keysAt });
  if (options.scope === "project") addWidening(file, source, add);
  return parsed.success && problems.count === before ? toConfig(parsed.data) : undefined;
}

function keysAt(path: KeyPath) {
  const at = path.join(".");
  return { known: KNOWN_KEYS[at] ?? [], others: at === "" ? [NOT_BUILT] : [] };
}

/** What a project's file may not say. */
function addWidening(file: Record<string, unknown>, source: YamlSource, add: Add): void {
  for (const key of USERS_OWN) {
    if (!Object.hasOwn(file, key)) continue;
    add(
      () => source.keyAt([key]),
      `A project can't set "${key}"; it belongs in your own config.yaml`,
    );
  }
  const { on_unknown: value } = file;
  if (!ON_UNKNOWN.some((each) => each === value) || PROJECT_ON_UNKNOWN.includes(value)) return;
  add(
    () => source.valueAt(["on_unknown"]),
    `A project can set "on_unknown" to ask or fail alone, got ${
      describe(value)
    }; a manifest can say more`,
  );
}

function toConfig(file: z.output<typeof configSchema>): ConfigFile {
  const { daemon = {}, gc = {}, checkpoint, on_unknown, ping = {} } = file;
  return {
    ...daemon.idle_timeout === undefined ? {} : { idleTimeoutMs: daemon.idle_timeout },
    ...gc.retention === undefined ? {} : { retentionMs: gc.retention },
    ...gc.max_runs === undefined ? {} : { maxRuns: gc.max_runs },
    ...checkpoint === undefined ? {} : { checkpointBytes: checkpoint },
    ...on_unknown === undefined ? {} : { onUnknown: on_unknown },
    ping: {
      ...ping.interval === undefined ? {} : { intervalMs: ping.interval },
      ...ping.timeout === undefined ? {} : { timeoutMs: ping.timeout },
      ...ping.misses === undefined ? {} : { misses: ping.misses },
    },
  };
}
