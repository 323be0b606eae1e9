/** Keeps the state folder in order without a daemon: repairs and exports journals, removes old runs. What is heavy is loaded by the operation that needs it. */
import { systemClock } from "../base/clock.ts";
import { disk } from "../base/disk.ts";
import { resolvePaths } from "../base/paths.ts";
import type { Storage } from "../base/storage.ts";
import type {
  ExportFormat,
  GarbageReport,
  GarbageRequest,
  JournalRepair,
  Upkeep,
} from "../base/upkeep.ts";
import type { LeaseTaker } from "../journal/mod.ts";
import { Pids } from "../kernel/pids.ts";
import { repairOf } from "./repair_report.ts";
import { Runs } from "./runs.ts";

/** The upkeep of the state folder that an environment names. */
export function createUpkeep(
  env: { [name: string]: string },
  { uid, osPid }: { uid: number; osPid: number },
): Upkeep {
  const { state, config } = resolvePaths(env, uid);
  return new StateUpkeep({
    storage: disk,
    config,
    runs: new Runs(disk, new Pids(disk, systemClock, state), state),
    taker: { clock: systemClock, osPid, instance: crypto.randomUUID() },
  });
}

export interface UpkeepDeps {
  storage: Storage;
  runs: Runs;
  taker: LeaseTaker;
  /** Folder of the user's configuration. */
  config: string;
}

export class StateUpkeep implements Upkeep {
  readonly #deps: UpkeepDeps;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
  }

  async repairJournal(run: string, { confirmed }: { confirmed: boolean }): Promise<JournalRepair> {
    const { storage, runs, taker } = this.#deps;
    const runId = await runs.find(run);
    return await repairOf({ storage, taker, folder: runs.folderOf(runId) }, confirmed);
  }

  async *exportJournal(run: string, format: ExportFormat): AsyncGenerator<string> {
    const { storage, runs } = this.#deps;
    const folder = runs.folderOf(await runs.find(run));
    const { exportRun } = await import("./export_run.ts");
    yield* exportRun(storage, folder, format);
  }

  async collectGarbage(request: GarbageRequest): Promise<GarbageReport> {
    const { storage, config } = this.#deps;
    const [{ collectGarbage }, { loadUserConfig, MAX_RUNS, RETENTION_MS }] = await Promise.all([
      import("./garbage.ts"),
      import("../manifest/load_config.ts"),
    ]);
    const { retentionMs = RETENTION_MS, maxRuns = MAX_RUNS } = await loadUserConfig(
      storage,
      config,
    );
    return await collectGarbage(this.#deps, {
      olderThanMs: request.olderThanMs ?? retentionMs,
      maxRuns: request.maxRuns ?? maxRuns,
      dryRun: request.dryRun,
    });
  }
}
