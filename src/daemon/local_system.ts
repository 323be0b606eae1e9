/** The whole system on one state folder in this OS process: runs at work, and reading what is on disk. */
import { type Clock, systemClock } from "../base/clock.ts";
import { disk } from "../base/disk.ts";
import { type RandomSource, systemRandom } from "../base/ids.ts";
import type { LiveSystem, Reader } from "../base/operations.ts";
import type { VfsRequest } from "../base/vfs_operations.ts";
import { vfsBy } from "../base/vfs_route.ts";
import { resolvePaths } from "../base/paths.ts";
import { makeDurableFolder } from "../base/state_file.ts";
import type { Storage } from "../base/storage.ts";
import { VERSION } from "../base/version.ts";
import { Pids } from "../kernel/pids.ts";
import { KERNEL_LIMITS } from "../kernel/ports.ts";
import { TrustStore } from "../manifest/trust.ts";
import { AgentSource } from "./agent_source.ts";
import { Judge } from "./judge.ts";
import { StateReader } from "./reader.ts";
import { RunSystem } from "./run_system.ts";
import { Runs } from "./runs.ts";
import { ServerSessions } from "./server_sessions.ts";

const FOLDER_MODE = 0o700;

/** What the system is handed; everything but the environment has a default. */
export interface SystemOptions {
  /** Environment of the rnix process itself: where its folders are. */
  env: { [name: string]: string };
  uid: number;
  osPid: number;
  storage?: Storage;
  clock?: Clock;
  random?: RandomSource;
  /** The mark of this process's children; a new one when left out. */
  instance?: string;
  /** Least growth of a journal between two checkpoints, bytes. */
  checkpointGrowthBytes?: number | undefined;
}

/** A system and what ends it. */
export interface RunningSystem {
  system: LiveSystem & Reader;
  runs: RunSystem;
  servers: ServerSessions;
  /** Looks at servers. */
  judge: Judge;
  /** Suspends what is at work, ends the servers and the guard. Idempotent. */
  close(): Promise<void>;
}

/** Opens the state folder. Throws a SysError when it can't be made. */
export async function createSystem(options: SystemOptions): Promise<RunningSystem> {
  const { storage = disk, clock = systemClock, random = systemRandom } = options;
  const { checkpointGrowthBytes } = options;
  const paths = resolvePaths(options.env, options.uid);
  await makeDurableFolder(storage, paths.state, FOLDER_MODE);
  const pids = new Pids(storage, clock, paths.state);
  const runs = new Runs(storage, pids, paths.state);
  const trust = new TrustStore(storage, paths.state);
  const places = { storage, config: paths.config, uid: options.uid, trust };
  const agents = new AgentSource(places);
  const kernel = {
    storage,
    clock,
    random,
    pids,
    runsFolder: runs.folder,
    osPid: options.osPid,
    instance: options.instance ?? crypto.randomUUID(),
    limits: KERNEL_LIMITS,
    version: VERSION,
    ...(checkpointGrowthBytes === undefined ? {} : { checkpointGrowthBytes }),
  };
  const live = new RunSystem({ kernel, runs, agents });
  const reader = new StateReader(storage, runs, () => Promise.resolve(agents));
  const outside = { ...places, agents, clock, keeper: () => live.guard() };
  const servers = new ServerSessions(outside);
  const judge = new Judge(outside);
  const close = () => live.close(Promise.all([servers.close(), judge.close()]).then(() => {}));
  return { system: together(live, reader), runs: live, servers, judge, close };
}

function together(live: RunSystem, reader: StateReader): LiveSystem & Reader {
  return {
    run: (request, observer) => live.run(request, observer),
    resume: (request, observer) => live.resume(request, observer),
    attach: (run, from, observer) => live.attach(run, from, observer),
    signal: (run, signal) => live.signal(run, signal),
    mountHealth: () => live.mountHealth(),
    vfs: (request: VfsRequest, signal?: AbortSignal) => vfsBy(request, { live, reader }, signal),
    processes: (options) => reader.processes(options),
    report: (run) => reader.report(run),
    planResume: (request) => reader.planResume(request),
    graph: (request) => reader.graph(request),
    readiness: (request) => reader.readiness(request),
    pastEvents: (run) => reader.pastEvents(run),
    mounts: () => reader.mounts(),
    inFlight: (...asked) => reader.inFlight(...asked),
    mountLogs: (mount, reading) => reader.mountLogs(mount, reading),
    verifyJournal: (run) => reader.verifyJournal(run),
    replay: (run) => reader.replay(run),
    compareReplay: (run) => reader.compareReplay(run),
    trace: (...asked) => reader.trace(...asked),
  };
}
