/** What a check ends with: its lines, the same as JSON, and exit code 1 where a run would fail for something that was found. */
import { EXIT_FAILED } from "../../base/exit.ts";
import type { CheckFault, McpCheck } from "../../manifest/check.ts";
import { counted } from "../amounts.ts";
import type { Context, Outcome } from "../command.ts";
import { oneLine } from "../plain_text.ts";
import type { JudgedServer } from "./check_connect.ts";
import { faultLines, type FaultWord, hintLines } from "./check_text.ts";

/** What was found, and how it is told. */
export interface CheckResult {
  /** What is there. */
  lines: string[];
  /** What is wrong. */
  faults: readonly CheckFault[];
  /** What a fault is called; `Warning` for what MCP's users know. */
  faultWord?: FaultWord;
  /** What is wrong and is in the lines already. */
  told: readonly CheckFault[];
  /** What a user should know of the search. */
  notices: readonly string[];
  /** What a person may want to do next. */
  advice?: string;
  /** `data` of the envelope, faults and notices aside. */
  data: object;
}

/** The outcome of a check. */
export function checkOutcome(
  { lines, faults, faultWord, told, notices, advice, data }: CheckResult,
  { loudness }: Pick<Context, "loudness">,
): Outcome {
  const shown = loudness === "verbose"
    ? faults
    : faults.filter(({ severity }) => severity !== "note");
  const all = [...told, ...faults];
  const grave = all.filter(({ severity }) => severity === "fault").length;
  const outcome: Outcome = {
    exitCode: grave === 0 ? 0 : EXIT_FAILED,
    data: { ...data, faults: all, notices },
    text: [...lines, ...faultLines(shown, faultWord)].join("\n"),
    untrusted: true,
    remarks: [
      ...notices.map(oneLine),
      ...hintLines(shown),
      ...shown.length === faults.length
        ? []
        : [`${counted(faults.length - shown.length, "more note")} with -v`],
      ...advice === undefined ? [] : [`hint: ${advice}`],
    ],
  };
  if (grave === 0) return outcome;
  const message = `${counted(grave, "fault")} found`;
  return { ...outcome, error: { code: "INVALID", message }, errorTold: true };
}

/** Agents and servers of a check, as JSON; with what a judge said of those that were started. */
export function mcpData(
  { agents, servers }: McpCheck,
  judged: readonly JudgedServer[] = [],
): object {
  const verdictOf = new Map(judged.map(({ server, verdict }) => [server, verdict]));
  return {
    agents: agents.map(({ name, scope, path, servers, loaded }) => ({
      name,
      scope,
      path,
      valid: loaded !== undefined,
      ...servers === undefined ? {} : { servers },
    })),
    servers: servers.map((checked) => {
      const { usedBy, isShared: _, ...server } = checked;
      const verdict = verdictOf.get(checked);
      return {
        ...server,
        ...usedBy === undefined ? {} : { used_by: usedBy },
        ...verdict === undefined ? {} : { verdict },
      };
    }),
  };
}

/** Loads what a check needs, which is no small part of the program, and reads the files around it. */
export async function prepareCheck({ world, env }: Context) {
  const [{ checkMcp }, { checkPlaces }, { disk }, { resolvePaths }, { transportFault }] =
    await Promise.all([
      import("../../manifest/check.ts"),
      import("../../manifest/check_places.ts"),
      import("../../base/disk.ts"),
      import("../../base/paths.ts"),
      import("./check_transport.ts"),
    ]);
  const paths = resolvePaths(env, world.uid);
  const ground = await checkPlaces({
    storage: disk,
    cwd: world.cwd,
    config: paths.config,
    uid: world.uid,
    env,
  });
  return {
    ...ground,
    /** The state folder. */
    state: paths.state,
    transportFault: await transportFault(disk, paths, world.uid),
    mcp: (references: readonly string[]) => checkMcp(ground.places, references),
  };
}
