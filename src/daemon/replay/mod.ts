/** Runs that play others with one side in earnest. */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import { shortRunId } from "../../base/ids.ts";
import type { RunRequest } from "../../base/operations.ts";
import type { Storage } from "../../base/storage.ts";
import type { LoadedAgent } from "../../manifest/agent_manifest.ts";
import type { AgentParts } from "../run_parts.ts";
import type { Runs } from "../runs.ts";
import { storedAgent } from "../stored_agent.ts";
import { endedRun } from "./ended_run.ts";
import { playedParts, unplayable } from "./played.ts";
import { readRecording, type Recording } from "./recording.ts";

/** What a run is made of that plays another one. */
export interface Played {
  agent: LoadedAgent;
  recording: Recording;
  parts: (parts: AgentParts) => AgentParts;
}

/** Rejects with NOT_FOUND, and with INVALID (exit 2) for a run that hasn't ended or can't be played so. */
export async function playedAgent(
  { storage, runs }: { storage: Storage; runs: Runs },
  { run, live, yes }: NonNullable<RunRequest["replay"]>,
): Promise<Played> {
  const runId = await endedRun(runs, run);
  const folder = runs.folderOf(runId);
  const recording = await readRecording(storage, folder, runId);
  const refusal = unplayable(recording, { live, confirmed: yes });
  if (refusal !== undefined) throw refusal;
  const agent = await storedAgent(storage, folder, recording.spec);
  if (agent === undefined) {
    const message = `The stored manifest of run ${shortRunId(runId)} can't be read`;
    throw new SysError("INVALID", message, { syscall: "Replay", exitCode: EXIT_USAGE });
  }
  return { agent, recording, parts: (parts) => playedParts(parts, recording, live) };
}
