/** `rnix doctor`: whether this machine and this installation are fit to run agents. What agents and servers are configured is `rnix check`'s business. */
import { findCommand } from "../../base/command_path.ts";
import { SysError, toSysError } from "../../base/errors.ts";
import { EXIT_FAILED } from "../../base/exit.ts";
import { type RnixPaths, withTilde } from "../../base/paths.ts";
import type { Storage } from "../../base/storage.ts";
import { VERSION } from "../../base/version.ts";
import { counted } from "../amounts.ts";
import type { Command, Context, Outcome } from "../command.ts";
import { oneLine } from "../plain_text.ts";
import { transportFault } from "./check_transport.ts";

/** `ok`: as it should be. `warning`: something works less well. `fault`: runs will fail. */
export interface Finding {
  what: string;
  state: "ok" | "warning" | "fault";
  message: string;
  hint?: string;
}

const MARKS = { ok: "✓", warning: "!", fault: "✗" } as const;
/** Programs that most servers are started with. */
const USUAL_PROGRAMS = ["node", "npx", "python3", "uvx", "docker", "git"];
/** A durable write that takes longer makes every step slow, milliseconds. */
const SLOW_SYNC_MS = 20;
const SYNCS = 5;

interface Facts {
  context: Context;
  storage: Storage;
  paths: RnixPaths;
}

/** Each looks at one thing and never throws. */
const EXAMINATIONS: readonly ((facts: Facts) => Promise<Finding>)[] = [
  examineRnix,
  examineState,
  examineConfig,
  examineSocket,
  examineDaemon,
  examineGuard,
  examinePrograms,
  examineRuns,
];

export const doctor: Command = {
  name: "doctor",
  summary: "Check whether this machine is fit to run agents",
  positionals: [],
  flags: [],
  details:
    "Starts nothing. Exits 0 when nothing is wrong, 1 when there are faults. For agents and servers there is rnix check.",
  async run(_, context) {
    const [{ disk }, { resolvePaths }] = await Promise.all([
      import("../../base/disk.ts"),
      import("../../base/paths.ts"),
    ]);
    const facts = { context, storage: disk, paths: resolvePaths(context.env, context.world.uid) };
    return outcomeOf(await Promise.all(EXAMINATIONS.map((examine) => examine(facts))));
  },
};

function outcomeOf(findings: readonly Finding[]): Outcome {
  const faults = findings.filter(({ state }) => state === "fault").length;
  const outcome: Outcome = {
    exitCode: faults === 0 ? 0 : EXIT_FAILED,
    data: { findings },
    text: findings.map(({ what, state, message }) => oneLine(`${MARKS[state]} ${what}: ${message}`))
      .join("\n"),
    remarks: findings.flatMap(({ what, hint }) =>
      hint === undefined ? [] : [`hint: ${what}: ${hint}`]
    ),
  };
  if (faults === 0) return outcome;
  const error = { code: "INVALID", message: `${counted(faults, "fault")} found` };
  return { ...outcome, error, errorTold: true };
}

function examineRnix({ context: { world } }: Facts): Promise<Finding> {
  const message = `${VERSION} on ${world.runtime} (${world.platform})`;
  return Promise.resolve({ what: "rnix", state: "ok", message });
}

/** Whether state can be kept: made, private, and how long a durable write takes. */
async function examineState({ context, storage, paths }: Facts): Promise<Finding> {
  const what = "state";
  const shown = withTilde(paths.state, context.env["HOME"]);
  try {
    const facts = await storage.stat(paths.state);
    if (facts === undefined) {
      return { what, state: "ok", message: `${shown} (made with the first run)` };
    }
    const ms = await syncMs(storage, paths.state, () => context.world.clock.monotonic());
    const message = `${shown}, a durable write takes ${ms.toFixed(1)} ms`;
    if (facts.mode !== undefined && (facts.mode & 0o077) !== 0) {
      const hint = `chmod 700 ${shown}: journals hold what tools were given and answered`;
      return { what, state: "warning", message: `${message}; others can look into it`, hint };
    }
    if (ms <= SLOW_SYNC_MS) return { what, state: "ok", message };
    const hint = "Every step waits for the disk at least once; a local disk is faster";
    return { what, state: "warning", message, hint };
  } catch (thrown) {
    const { message } = toSysError(thrown);
    const hint = "Nothing can run without it; name another place with RNIX_HOME";
    return { what, state: "fault", message: `${shown} can't be used: ${message}`, hint };
  }
}

/** The median of a few. */
async function syncMs(storage: Storage, folder: string, nowMs: () => number): Promise<number> {
  const path = `${folder}/.rnix-doctor-${crypto.randomUUID()}`;
  const file = await storage.open(path, { createNew: true, mode: 0o600 });
  try {
    const times: number[] = [];
    for (let turn = 0; turn < SYNCS; turn += 1) {
      const startMs = nowMs();
      file.append(new Uint8Array(2048));
      await file.sync();
      times.push(nowMs() - startMs);
    }
    return times.toSorted((a, b) => a - b)[Math.floor(SYNCS / 2)] ?? 0;
  } finally {
    file.close();
    await storage.remove(path);
  }
}

async function examineConfig({ context, storage, paths }: Facts): Promise<Finding> {
  const what = "configuration";
  const shown = withTilde(paths.config, context.env["HOME"]);
  const names = await storage.list(paths.config).catch(() => []);
  const known = names.filter((name) => /\.yaml$/.test(name) || ["agents", "skills"].includes(name));
  const { loadConfig } = await import("../../manifest/load_config.ts");
  const places = {
    storage,
    cwd: context.world.cwd,
    home: context.env["HOME"],
    uid: context.world.uid,
    config: paths.config,
  };
  try {
    await loadConfig(places);
  } catch (thrown) {
    const { message, hint } = toSysError(thrown);
    return { what, state: "fault", message, ...(hint === undefined ? {} : { hint }) };
  }
  const message = known.length === 0
    ? `${shown} (nothing there)`
    : `${shown} (${known.join(", ")})`;
  return { what, state: "ok", message };
}

async function examineSocket({ context, storage, paths }: Facts): Promise<Finding> {
  const what = "socket";
  const fault = await transportFault(storage, paths, context.world.uid);
  const shown = withTilde(paths.runtime, context.env["HOME"]);
  if (fault === undefined) return { what, state: "ok", message: shown };
  return { what, state: "fault", message: fault };
}

async function examineDaemon({ context }: Facts): Promise<Finding> {
  const what = "daemon";
  try {
    const status = await context.world.daemon(context.env).status();
    if (status === undefined) return { what, state: "ok", message: "not running" };
    const { os_pid, version, runs } = status;
    const message = `process ${os_pid}, rnix ${version}, ${counted(runs, "run")} at work`;
    if (version === VERSION) return { what, state: "ok", message };
    const hint =
      "rnix daemon stop, once its runs may be suspended; the next command starts this one";
    return { what, state: "warning", message: `${message}; this is rnix ${VERSION}`, hint };
  } catch (thrown) {
    const { message, hint } = toSysError(thrown);
    return { what, state: "fault", message, ...(hint === undefined ? {} : { hint }) };
  }
}

/** What sees to it that no server outlives rnix. */
async function examineGuard(): Promise<Finding> {
  const what = "orphan guard";
  try {
    // Asked of the shell, which may look there.
    const { success } = await new Deno.Command("/bin/sh", {
      args: ["-c", "[ -r /proc/self/environ ]"],
      clearEnv: true,
      cwd: "/",
    }).output();
    if (success) return { what, state: "ok", message: "/bin/sh, /proc" };
  } catch {
    const hint = "No server is started without it";
    return { what, state: "fault", message: "/bin/sh can't be run", hint };
  }
  return {
    what,
    state: "warning",
    message: "/bin/sh, no /proc: only process groups can be ended",
    hint: "A server that leaves its session may outlive a crash of rnix here",
  };
}

async function examinePrograms({ context: { env, world } }: Facts): Promise<Finding> {
  const what = "programs";
  const found = await Promise.all(USUAL_PROGRAMS.map(async (name) => {
    try {
      return { name, path: await findCommand(name, { cwd: world.cwd, path: env["PATH"] }) };
    } catch (thrown) {
      if (!(thrown instanceof SysError)) throw thrown;
      return { name, path: undefined };
    }
  }));
  const there = found.flatMap(({ path }) => path === undefined ? [] : [path]);
  const missing = found.filter(({ path }) => path === undefined).map(({ name }) => name);
  const message = [
    there.length === 0 ? "none of the usual ones" : there.join(", "),
    ...(missing.length === 0 ? [] : [`not found: ${missing.join(", ")}`]),
  ].join("; ");
  if (!missing.includes("npx")) return { what, state: "ok", message };
  const hint =
    "Most MCP servers are started with npx; install Node.js, or name a server's own program";
  return { what, state: "warning", message, hint };
}

async function examineRuns({ context }: Facts): Promise<Finding> {
  const what = "runs";
  try {
    const rows = await (await context.system()).processes({ all: false });
    const at = (reason: string) => rows.filter((row) => row.reason === reason).length;
    const suspended = rows.filter(({ state }) => state === "suspended").length;
    const message = `${rows.length - suspended} at work, ${suspended} suspended`;
    const [undecided, damaged] = [at("unknown-outcome"), at("journal")];
    if (undecided + damaged === 0) return { what, state: "ok", message };
    const told = [
      ...(undecided === 0 ? [] : [`${undecided} with calls of unknown outcome`]),
      ...(damaged === 0 ? [] : [`${damaged} with a damaged journal`]),
    ];
    const hint = "rnix ps tells which; resume decides, journal verify says what is damaged";
    return { what, state: "warning", message: `${message} (${told.join(", ")})`, hint };
  } catch (thrown) {
    const { message, hint } = toSysError(thrown);
    return { what, state: "fault", message, ...(hint === undefined ? {} : { hint }) };
  }
}
