/**
 * The operations between a command and the running system, and their wire types (JSON, snake_case).
 *
 * The command line speaks only to `System`. Today the running system lives in the same OS process; behind a socket it will be the same table.
 */
import type { Budget } from "./budget.ts";
import type { ClientFacts, ErrorBody, TrustQuestion } from "./client_facts.ts";
import type { OnUnknown } from "./effect.ts";
import type { EndSignal, SuspendReason } from "./exit.ts";
import type { ReadinessFault, ReadinessRequest } from "./readiness.ts";
import type { GraphRequest, GraphView } from "./graph.ts";
import type { Json } from "./json.ts";
import type { HealthRow, MountPhase } from "./mount_health.ts";
import type { ServerObserver, ServerRequest, ServerSession } from "./server_operations.ts";
import type { JudgeObserver, JudgeRequest } from "./server_verdict.ts";
import type { VfsAnswer, VfsRequest } from "./vfs_operations.ts";

export type { ClientFacts, ErrorBody, TrustQuestion, UntrustedFile } from "./client_facts.ts";

export type ProcessState = "created" | "running" | "suspended" | "zombie" | "dead";

/** A call whose outcome is unknown and not settled. */
export interface UnknownCall {
  run_id: string;
  call: string;
  tool: string;
  effect: string;
  cause: string;
  /** What is known of it: the limit that ran out and its key, how the connection ended. */
  message?: string;
  attempt: number;
}

/** What was used of models. */
export interface Use {
  turns: number;
  tokens_used: number;
  cost_usd: number | null;
}

/** What a process itself has used, and what it has together with all below it; a workflow itself uses nothing. */
export interface TreeUse extends Use {
  /** Counted as the budget counts, its own part included; absent where nothing below it used anything. */
  tree?: Use;
}

/** What `run` and `resume` end with: `data` of their JSON envelope. */
export interface RunReport extends TreeUse {
  pid: number | null;
  run_id: string;
  state: ProcessState;
  reason?: SuspendReason;
  signal?: EndSignal;
  result: string;
  exit_code: number;
  elapsed_ms: number;
  unknown_calls?: UnknownCall[];
  /** All reasons of the suspension, where there are several. */
  reasons?: SuspendReason[];
  /** Calls that ended with an error; absent when there were none. */
  failed_calls?: number;
  /** Why it failed or was suspended, where there is an error. */
  error?: ErrorBody;
}

/** What a process at work has begun and nobody knows the end of yet. */
export interface InFlight {
  pid: number;
  /** In the words of strace. */
  syscall: "Model" | "Write" | "Read" | "Wait";
  /** VFS path in the process's own view; of `Wait` the agent's. */
  path: string;
  /** Epoch milliseconds. */
  started_ms: number;
}

/** A row of `ps`. */
export interface ProcessRow extends TreeUse {
  pid: number;
  ppid: number;
  run_id: string;
  state: ProcessState;
  reason?: SuspendReason;
  agent: string;
  intent: string;
  model: string;
  elapsed_ms: number;
  mounts: string[];
  unknown_calls?: UnknownCall[];
  /** Of a process at work, oldest first; absent where there is nothing. */
  in_flight?: InFlight[];
  /** Epoch milliseconds. */
  started_ms: number;
  exit_code?: number;
  /** What ended it, where a signal did. */
  signal?: EndSignal;
}

/** What happens in a run while one watches: one JSON object a line with `run --stream`. Results appear only once they are durable. */
export type RunEvent =
  & { pid: number; ts: number }
  & (
    | {
      type: "run.started" | "run.resumed";
      run_id: string;
      agent: string;
      intent: string;
      model: string;
      /** Run id of the run whose past this one was made from. */
      forked_from?: string;
    }
    | { type: "mount.starting"; server: string }
    | {
      type: "mount.ready";
      server: string;
      /** Its own. */
      tools: number;
      /** Its model has its resources, too. */
      resources?: true;
      duration_ms: number;
      protocol_version: string;
    }
    | {
      type: "mount.changed";
      server: string;
      added: string[];
      removed: string[];
      changed: string[];
    }
    | { type: "mount.failed"; server: string; required: boolean; error: ErrorBody }
    | { type: "model.started"; turn: number }
    | { type: "model.delta"; turn: number; kind: "text" | "reasoning"; text: string }
    | {
      type: "model.finished";
      turn: number;
      duration_ms: number;
      input_tokens: number;
      output_tokens: number;
    }
    | { type: "model.retrying"; turn: number; wait_ms: number; error: ErrorBody }
    | { type: "context.compacting"; turn: number }
    | {
      type: "context.compacted";
      turn: number;
      /** `results`: no summary stands in the messages' place, their tool results were left out. */
      how: "summary" | "results";
      /** So many messages of the history. */
      messages: number;
      /** Why there is no summary, where one was asked for. */
      error?: ErrorBody;
    }
    | { type: "call.started"; call: string; attempt: number; tool: string; input: Json }
    | { type: "call.progress"; call: string; message: string }
    | {
      type: "call.finished";
      call: string;
      attempt: number;
      outcome: "ok" | "error";
      duration_ms: number;
      preview: string;
    }
    | {
      type: "call.unknown";
      call: string;
      attempt: number;
      tool: string;
      effect: string;
      cause: string;
      message?: string;
    }
    | { type: "call.settled"; call: string; tool?: string; how: string; by: string }
    | { type: "child.spawned"; call: string; agent: string; run_id: string; child_pid: number }
    | { type: "child.suspended"; call: string; run_id: string; reason: SuspendReason }
    | { type: "child.exited"; call: string; run_id: string; status: string }
    | { type: "notice"; message: string }
    | { type: "run.suspended"; reason: SuspendReason }
    | { type: "run.exited"; status: string; exit_code: number }
  );

/** How a person settles an unknown outcome: `done` may carry the result as JSON. */
export type UnknownDecision =
  | { how: "retry" | "skip" | "fail" }
  | { how: "done"; result?: Json };

/** `--unknown=[[RUN/]CALL:]DECISION`; without a call it holds for all of the run. */
export interface UnknownRule {
  run?: string;
  call?: string;
  decision: UnknownDecision;
}

export interface RunOptions {
  model?: string;
  budget?: Budget;
  /** The run goes on without its client. */
  detached?: boolean;
}

export interface RunRequest extends RunOptions {
  /** Plays an ended run again, with its agent and its intent, one side in earnest; `manifest` and `intent` are left aside. */
  replay?: {
    run: string;
    live: "model" | "mcp";
    /** Confirms that effects of the run are to be done again. */
    yes: boolean;
  };
  /** A file, a folder or an agent's name. */
  manifest: string;
  intent: string;
  client: ClientFacts;
  /** Trust what was found by name in project scope, and remember it. */
  trust: boolean;
  /** Parameters of a workflow. */
  parameters?: { [name: string]: string };
}

export interface ResumeRequest extends RunOptions {
  run: string;
  /** A new intent, for a completed run. */
  intent?: string;
  client: ClientFacts;
  unknown: UnknownRule[];
  onUnknown?: OnUnknown;
  /** Use the stored manifest of a dead run. */
  stored: boolean;
  acceptCut: boolean;
  fork: boolean;
  fromStep?: number;
  /** A fork of a workflow in which this node runs again, and with `andAfter` all after it. */
  again?: { node: string; andAfter: boolean };
  /** Confirms a fork that would leave effects behind. */
  yes: boolean;
  trust: boolean;
}

/** What a resume would do with an agent that the run has started. */
export interface PlannedChild {
  /** The call that is the child, and its tool. */
  call: string;
  tool: string;
  run_id: string;
  /** What its parent would do with it. */
  does: string;
  /** What it would do itself, where it is taken up. */
  plan?: ResumePlan;
}

/** What a resume would do; nothing was done for it. */
export interface ResumePlan {
  run_id: string;
  state: ProcessState;
  reason?: SuspendReason;
  agent: string;
  entries: number;
  turns: number;
  notices: string[];
  /** Set where a new run is made from this one's past; what it would leave done. */
  fork?: {
    from_step?: number;
    /** Nodes of a workflow that run again. */
    again?: string[];
    stays_done: { call: string; tool: string; effect: string }[];
  };
  mounts: string[];
  /** What becomes of the tools that are known of each server: compared with what it lists then, withdrawn because the manifest no longer names it, or learnt. */
  tools?: { server: string; known: number; would: "compare" | "withdraw" | "learn" }[];
  /** Unknown outcomes and what would become of each. */
  settle: {
    call: string;
    tool: string;
    effect: string;
    cause: string;
    message?: string;
    attempt: number;
    would: string;
  }[];
  /** Agents that were started and whose end has not been read. */
  children?: PlannedChild[];
  /** Calls decided and never sent. */
  send: {
    call: string;
    tool: string;
    effect: string;
    /** The run that is taken up again by it. */
    continues?: string;
  }[];
  next: string;
  /** Why the resume would be refused, or suspended at once. */
  error?: ErrorBody;
  /** What the resume would end with at once; 0 where it would go on. */
  exit_code: number;
}

export interface RunHandle {
  readonly pid: number;
  readonly runId: string;
  /** Suspends: what is in flight is cancelled and awaited for 2 s. */
  suspend(reason: SuspendReason): void;
  /** Ends the run; dead afterwards. */
  kill(signal: EndSignal): void;
  /** Resolves once the run is over, its end durable and its servers gone. Never rejects. */
  readonly done: Promise<RunReport>;
}

/** What a client hands in to watch and to answer. Must not throw. */
export interface RunObserver {
  onEvent(event: RunEvent): void;
  /** This side was too slow for so many events. */
  onMissed?(events: number): void;
  /** Asks a person about an unknown outcome; undefined: no decision. Only called when `interactive`. */
  decideUnknown?(call: UnknownCall, signal: AbortSignal): Promise<UnknownDecision | undefined>;
  /** Asks a person whether an agent of the project may run. Only called when `interactive`. */
  confirmTrust?(question: TrustQuestion): Promise<boolean>;
}

export interface JournalFindings {
  run_id: string;
  entries: number;
  bytes: number;
  ok: boolean;
  problems: { record: number; offset: number; kind: string; message: string }[];
}

/** A line of a mounted server's log. */
export interface LogLine {
  server: string;
  run_id: string;
  /** The server's stderr, noise on its stdout, or a note of rnix itself. */
  source: "stderr" | "stdout" | "rnix";
  text: string;
}

/** How much of a log is read. */
export interface LogReading {
  /** Goes on until the run is over, or the signal aborts. */
  follow?: boolean;
  /** Of what is there only so many lines, the last ones. */
  lines?: number | undefined;
  signal?: AbortSignal;
}

/** What is not the same in a run that is gone through again. */
export interface ReplayDifference {
  /** Record of the journal; absent where two runs are compared. */
  record?: number;
  what: "request" | "call" | "end";
  message: string;
}

/** What a replay found. */
export interface ReplayReport {
  run_id: string;
  same: boolean;
  requests: number;
  calls: number;
  differences: ReplayDifference[];
}

/** One traced call: a line of `strace`, and of `strace --json`. */
export interface TraceRow {
  timestamp_ms: number;
  pid: number;
  syscall: string;
  args: { [name: string]: Json };
  result: Json;
  error: string | null;
  duration_ms: number;
}

/** A traced call, or how many of one process can't be read any more. */
export type TraceItem =
  | { kind: "record"; record: TraceRow }
  | { kind: "missed"; pid: number; events: number };

/** A mounted or configured server: a row of `mcp list`. */
export interface MountRow {
  /** `{pid}-{server}`. */
  mount: string;
  pid: number;
  agent: string;
  server: string;
  transport: string;
  /** How its connection fares; `unmounted` where its run isn't at work. */
  status: MountPhase | "unmounted";
  /** Its own. */
  tools: number;
  /** Its model has its resources, too. */
  resources?: true;
  protocol_version: string;
  /** Since when the status is what it is, milliseconds since 1970; this and what follows only of a run at work. */
  since_ms?: number;
  /** Starts since the server was last healthy, the first one aside. */
  attempts?: number;
  /** Why it was lost or couldn't be started the last time. */
  last_error?: string;
}

/** What `kill` and `pause` tell a run. */
export type RunSignal = EndSignal | "PAUSE";

/** Where `attach` begins: with the first event of the run, or with the next one. */
export type AttachFrom = "start" | "now";

/** Operations on runs at work: the daemon's. */
export interface LiveSystem {
  /** Rejects with a SysError when the run could not be started; a run that was started always ends in a report. */
  run(request: RunRequest, observer: RunObserver): Promise<RunHandle>;
  resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle>;
  /** Joins a run at work; an observer with `decideUnknown` is asked as well. Rejects with NOT_FOUND when there is none, INVALID when it isn't at work. */
  attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle>;
  /** Uses what a process at work has: its mounts and devices, its descriptors, the health of its mounts. Aborting gives up waiting, which cancels a write. */
  vfs(request: VfsRequest, signal?: AbortSignal): Promise<VfsAnswer>;
  /** How the mounts of all runs at work fare. */
  mountHealth(): Promise<HealthRow[]>;
  /** Sends a signal to a run. A suspended run can only be ended; one that has ended takes none (INVALID). */
  signal(run: string, signal: RunSignal): Promise<void>;
}

/** Operations on servers outside of runs: the daemon's. */
export interface ServerOpener {
  /** Connects to a server. Rejects with a SysError: exit 2 when there is none of that name, 3 when it couldn't be connected. */
  openServer(request: ServerRequest, observer: ServerObserver): Promise<ServerSession>;
  /** Starts servers, looks at each and ends it. Resolves once all verdicts are told; what is wrong with a server is its verdict. */
  judgeServers(request: JudgeRequest, observer: JudgeObserver): Promise<void>;
}

/** Operations that only read the state folder: they need no daemon. */
export interface Reader {
  processes(options: { all: boolean }): Promise<ProcessRow[]>;
  /** The report of a run that isn't at work; undefined for one that is. */
  report(run: string): Promise<RunReport | undefined>;
  planResume(request: ResumeRequest): Promise<ResumePlan>;
  /** What a run of an agent would be refused for before it starts. */
  readiness(request: ReadinessRequest): Promise<ReadinessFault[]>;
  /** A workflow as a graph, of a manifest or of a run. */
  graph(request: GraphRequest): Promise<GraphView>;
  /** What happened in a run so far, from its journal. */
  pastEvents(run: string): AsyncIterable<RunEvent>;
  /** A mount of a run at work counts as connected: how it fares only the daemon knows. */
  mounts(): Promise<MountRow[]>;
  /** What a run at work, and with `withChildren` all below it, has in flight, oldest first; nothing of one that isn't at work. */
  inFlight(run: string, withChildren?: boolean): Promise<InFlight[]>;
  /** stderr of a mounted server: `mount` is `{pid}-{server}` or a server name (the newest run that has it). */
  mountLogs(mount: string, reading?: LogReading): AsyncIterable<LogLine>;
  /** Looks at what the VFS has of runs, at work or not: `/proc`, and what is mounted. */
  vfs(request: VfsRequest): Promise<VfsAnswer>;
  verifyJournal(run: string): Promise<JournalFindings>;
  /** An ended run again, from its records alone. */
  replay(run: string): Promise<ReplayReport>;
  /** A run that played another one held against that one. */
  compareReplay(run: string): Promise<ReplayReport>;
  /** The trace of a run, followed until its end where it is at work; `now` passes over what was. */
  trace(
    run: string,
    from: AttachFrom,
    signal?: AbortSignal,
    withChildren?: boolean,
  ): AsyncIterable<TraceItem>;
}

export interface System extends LiveSystem, ServerOpener, Reader {
  /** The VFS as one: each path is answered by who has it. */
  vfs(request: VfsRequest, signal?: AbortSignal): Promise<VfsAnswer>;
}
