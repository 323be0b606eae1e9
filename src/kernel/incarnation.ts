/**
 * One incarnation of a run: mounts its servers, runs its program, unmounts. A fresh run and a resumed one differ only in what was folded before.
 *
 * States: created → mounting → running → ended. A stop in any of them leads to `ended`, with everything that was mounted closed.
 */
import type { Clock } from "../base/clock.ts";
import { SysError, toSysError } from "../base/errors.ts";
import { EXIT_MOUNT } from "../base/exit.ts";
import type { Json } from "../base/json.ts";
import type { ErrorBody } from "../base/operations.ts";
import type { VfsAnswer } from "../base/vfs_operations.ts";
import type { BlobRef, EntryBody } from "../journal/entry.ts";
import { callLimit, modelLimit } from "../policy/limits.ts";
import { misfitNotice, misfitsOf } from "../policy/rule_misfits.ts";
import { FdTable, type OpenDescriptor } from "../vfs/fd_table.ts";
import { MountTable } from "../vfs/mount_table.ts";
import { errorRecord } from "./answers.ts";
import type { ChildPort } from "./children.ts";
import { failedBody, type Stop, stopBody, suspendedBody } from "./endings.ts";
import { Gate } from "./gate.ts";
import { KeptResults, readResultBinding, resultsPath } from "./kept_results.ts";
import type { RunEnd } from "./ledger.ts";
import { ModelDevice, modelPath } from "./model_device.ts";
import { ModelGate } from "./model_gate.ts";
import type { MountHealth } from "../base/mount_health.ts";
import { countTools } from "../base/resource_tools.ts";
import type { MountDriver, MountFacts, MountFailure, MountSpec } from "./mount.ts";
import { mountAll, type Mounted, unmountAll } from "./mounting.ts";
import { type Access, OperatorGate } from "./operator_gate.ts";
import type { Intake, KernelLimits, ModelPort, Observer, Telemetry, Trace } from "./ports.ts";
import type { PromptHead } from "./program.ts";
import type { RunLog } from "./run_log.ts";
import type { RunState } from "./run_state.ts";
import { ownBindings, type OwnMount } from "./own_tools.ts";
import { Runner } from "./runner.ts";
import type { Settler } from "./settler.ts";
import {
  type Offer,
  type Offered,
  type OfferRules,
  offerTools,
  surplusNotice,
} from "./tool_offer.ts";
import { compareTools, mountPoint, type ToolBinding, ToolTable } from "./tool_table.ts";

export interface IncarnationDeps<S, P extends PromptHead> {
  clock: Clock;
  limits: KernelLimits;
  log: RunLog;
  /** Folded up to now. */
  state: RunState<S, P>;
  settler: Settler;
  pid: number;
  driver: MountDriver;
  specs: readonly MountSpec[];
  unavailable: readonly MountFailure[];
  own: readonly OwnMount[];
  children: ChildPort;
  /** Agents that the process may start, as tools. */
  agents: readonly ToolBinding[];
  model: ModelPort<P>;
  /** Asked where `model` can't serve. */
  fallback?: ModelPort<P>;
  intake: Intake;
  trace: Trace;
  telemetry?: Telemetry;
  observer: Observer;
  /** A failed mount suspends a run that has something to go on with, and ends any other. */
  keeps: boolean;
}

/** What only a process at work knows. */
export interface LiveFacts {
  descriptors: OpenDescriptor[];
  /** Sorted by path; only what is connected to has a health. */
  mounts: { path: string; health: MountHealth | undefined }[];
}

export class Incarnation<S, P extends PromptHead> {
  readonly #deps: IncarnationDeps<S, P>;
  readonly #mounting = new AbortController();
  readonly #tools = new ToolTable();
  readonly #mounts = new MountTable();
  readonly #files = new FdTable();
  /** What each mounted server lists, in the manifest's order. */
  #listed: Offer[] = [];
  /** Servers whose list is another one since the last turn. */
  readonly #changed = new Map<string, MountFacts>();
  /** Tools over the limit, as last told. */
  #surplus: Offered["surplus"] = [];
  #mounted: Mounted[] = [];
  #runner: Runner<S, P> | undefined;
  #operator: OperatorGate | undefined;
  #stop: Stop | undefined;

  constructor(deps: IncarnationDeps<S, P>) {
    this.#deps = deps;
  }

  /** Suspends or kills; may be called at any time, before `run` too. */
  stop(stop: Stop): void {
    if (this.#stop === undefined || stop.kind === "kill") this.#stop = stop;
    this.#mounting.abort();
    this.#runner?.stop(stop);
  }

  /** Does what a person asks of the devices. Rejects as `OperatorGate` does, and with INVALID while there are no devices yet, or no more. */
  async access(access: Access, signal: AbortSignal): Promise<VfsAnswer> {
    const operator = this.#operator;
    if (this.#runner === undefined || operator === undefined) {
      throw new SysError("INVALID", "The run has nothing mounted now", {
        hint: "Its servers are being started or ended: try again in a moment",
      });
    }
    return await this.#runner.beside((either) => operator.access(access, either), signal);
  }

  /** What is open and how the mounts fare, now. */
  look(): LiveFacts {
    const connected = new Map(
      this.#mounted.map(({ spec, mount }) => [mountPoint(this.#deps.pid, spec.server), mount]),
    );
    return {
      descriptors: this.#files.list(),
      mounts: this.#mounts.paths().map((path) => {
        const health = connected.get(path)?.health;
        return { path, health: health && this.#told(health) };
      }),
    };
  }

  /** What servers say may hold secrets. */
  #told(health: MountHealth): MountHealth {
    const { redactor } = this.#deps.log;
    const { lastError } = health;
    if (redactor === undefined || lastError === undefined) return health;
    return { ...health, lastError: redactor.redact(lastError) };
  }

  /** Resolves with the durable end, all servers closed. Never rejects. */
  async run(): Promise<RunEnd> {
    let end: RunEnd;
    try {
      end = await this.#mountAndRun();
    } catch (thrown) {
      end = this.#journalEnd(thrown);
    }
    this.#emitEnd(end);
    this.#files.closeAll();
    await unmountAll(this.#mounted);
    return end;
  }

  async #mountAndRun(): Promise<RunEnd> {
    if (this.#needsServers()) {
      const failed = await this.#mountServers();
      if (failed !== undefined) return failed;
    }
    if (this.#stop !== undefined) return await this.#endByStop(this.#stop);
    return await this.#runProgram();
  }

  /** A run that only has to end (a crash came just before), or that a limit lets do nothing, needs no servers for it. */
  #needsServers(): boolean {
    const { ledger } = this.#deps.state;
    const actions = this.#deps.state.decide();
    if (actions.length === 0 || ledger.openCalls().length > 0) return true;
    if (ledger.openChildren().length > 0) return true;
    const totals = this.#totals();
    return actions.some(({ kind }) => {
      if (kind === "exit" || kind === "timer") return false;
      const limit = kind === "model" || kind === "compact" ? modelLimit : callLimit;
      return limit(ledger.state.budget, totals) === undefined;
    });
  }

  /** The end of the run where it can't go on without a server, or was stopped meanwhile. */
  async #mountServers(): Promise<RunEnd | undefined> {
    const { driver, specs, unavailable, pid, clock, observer, log, state } = this.#deps;
    for (const { server, tools } of Object.values(state.ledger.state.mounts)) {
      this.#tools.recall(server, tools);
    }
    const { mounted, failures } = await mountAll(driver, specs, {
      pid,
      clock,
      signal: this.#mounting.signal,
      onStart: (server) => observer.emit({ type: "mount.starting", server }),
    });
    this.#mounted = mounted;
    for (const { server, required, error } of [...unavailable, ...failures]) {
      log.append({ type: "mount.failed", server, required, error: errorRecord(error) });
      observer.emit({ type: "mount.failed", server, required, error: errorBody(error) });
    }
    const fatal = failures.find((failure) => failure.required);
    // A stop goes before a failed mount, as for the reasons of a suspension.
    if (this.#stop !== undefined) return undefined;
    if (fatal !== undefined) return await this.#endBy(this.#mountFailedBody(fatal));
    this.#takeMounts(mounted, await this.#keepDefinitions(mounted));
    return undefined;
  }

  /** What servers say of their tools, durable before the entries that name it. */
  async #keepDefinitions(mounted: readonly Mounted[]): Promise<BlobRef[]> {
    const { journal, redactor } = this.#deps.log;
    return await Promise.all(mounted.map(({ mount }) => {
      const said = mount.facts.tools.map((tool): Json => ({ ...tool }));
      const safe = redactor?.redactJson(said) ?? said;
      return journal.putBlob(new TextEncoder().encode(JSON.stringify(safe)));
    }));
  }

  #takeMounts(mounted: readonly Mounted[], definitions: readonly BlobRef[]): void {
    this.#listed = mounted.map(({ spec, mount }) => ({ spec, facts: mount.facts }));
    const offers = this.#offer();
    mounted.forEach((one, index) =>
      this.#takeMounted(one, offers[index]?.facts ?? one.mount.facts, definitions[index])
    );
    this.#withdrawServers();
  }

  /** Servers that the manifest no longer names: what they offered is withdrawn with them. */
  #withdrawServers(): void {
    const { log, observer, specs, unavailable, state } = this.#deps;
    const known = new Set([...specs, ...unavailable].map(({ server }) => server));
    for (
      const { server, era, protocol_version, tools } of Object.values(state.ledger.state.mounts)
    ) {
      const removed = Object.keys(tools).sort();
      if (known.has(server) || removed.length === 0) continue;
      log.append({ type: "mount.changed", server, era, protocol_version, tools: {} });
      observer.emit({ type: "mount.changed", server, added: [], removed, changed: [] });
    }
  }

  #takeMounted(
    { spec, mount, durationMs }: Mounted,
    facts: MountFacts,
    definitions: BlobRef | undefined,
  ): void {
    const { log, observer, pid, state } = this.#deps;
    const before = state.ledger.state.mounts[spec.server]?.tools;
    this.#mounts.mount(mountPoint(pid, spec.server), mount);
    this.#tools.bind(spec, facts, pid);
    mount.onChange = (facts) => this.#changed.set(spec.server, facts);
    const tools = this.#tools.records(spec.server);
    const entry = log.append({
      type: "mount.ready",
      ...this.#mountBody(spec, facts),
      ...(definitions === undefined ? {} : { definitions }),
    });
    log.show(entry.seq, () =>
      observer.emit({
        type: "mount.ready",
        server: spec.server,
        ...countTools(tools),
        duration_ms: durationMs,
        protocol_version: facts.protocolVersion,
      }));
    this.#tellSetAside({ spec, facts }, {});
    this.#tellMisfits({ spec, facts });
    if (before !== undefined) this.#emitChanges(spec.server, before);
  }

  /** Rules of the manifest for tools that the server doesn't have. */
  #tellMisfits({ spec, facts }: Offer): void {
    const names = [...facts.tools.map(({ name }) => name), ...Object.keys(facts.setAside)];
    for (const misfit of misfitsOf(spec.rules, names)) {
      this.#deps.observer.emit({ type: "notice", message: misfitNotice(spec.server, misfit) });
    }
  }

  /** Each tool with its reason; those over the limit are told of all together. */
  #tellSetAside({ spec, facts }: Offer, known: MountFacts["setAside"]): void {
    const surplus = this.#surplus.find(({ server }) => server === spec.server)?.tools ?? [];
    for (const [tool, reason] of Object.entries(facts.setAside)) {
      if (surplus.includes(tool) || Object.hasOwn(known, tool)) continue;
      this.#deps.observer.emit({
        type: "notice",
        message: `${spec.server}: tool "${tool}" is set aside: ${reason}`,
      });
    }
  }

  /** What is offered of all that is listed. Tells of tools over the limit, once. */
  #offer(): Offer[] {
    const { observer, model, fallback, own, agents } = this.#deps;
    const limits = [model, fallback].flatMap((port) =>
      port?.toolsMax === undefined ? [] : [{ provider: port.provider, toolsMax: port.toolsMax }]
    );
    // A turn that goes to the fallback has the same tools.
    const [tightest] = limits.sort((a, b) => a.toolsMax - b.toolsMax);
    const rules: OfferRules = {
      provider: tightest?.provider ?? model.provider,
      refuses: (tool) => model.refuses(tool),
      toolsMax: tightest?.toolsMax,
      ownTools: own.reduce((sum, { tools }) => sum + tools.length, agents.length),
    };
    const { offers, surplus } = offerTools(this.#listed, rules);
    const isNews = JSON.stringify(surplus) !== JSON.stringify(this.#surplus);
    this.#surplus = surplus;
    if (isNews && surplus.length > 0) {
      observer.emit({ type: "notice", message: surplusNotice(surplus, rules) });
    }
    return offers;
  }

  #mountBody(spec: MountSpec, facts: MountFacts) {
    return {
      server: spec.server,
      era: facts.era,
      protocol_version: facts.protocolVersion,
      ...(facts.serverInfo === undefined ? {} : { server_info: facts.serverInfo }),
      tools: this.#tools.records(spec.server),
      ...(Object.keys(facts.setAside).length === 0 ? {} : { set_aside: facts.setAside }),
    };
  }

  #emitChanges(server: string, before: Parameters<typeof compareTools>[0]): void {
    const changes = compareTools(before, this.#tools.records(server));
    if (changes.added.length + changes.removed.length + changes.changed.length === 0) return;
    this.#deps.observer.emit({ type: "mount.changed", server, ...changes });
  }

  /** Takes over changed tool lists, and offers what reads cut results once there are any; only between turns, so that a turn sees one set of tools. */
  #beforeTurn(): void {
    this.#offerResults();
    if (this.#changed.size === 0) return;
    const changed = new Map(this.#changed);
    this.#changed.clear();
    const { log, pid, state } = this.#deps;
    this.#listed = this.#listed.map(({ spec, facts }) => ({
      spec,
      facts: changed.get(spec.server) ?? facts,
    }));
    for (const { spec, facts } of this.#offer()) {
      const last = state.ledger.state.mounts[spec.server];
      // More tools of one server may leave less room for those of another.
      const isSame = sameNames(last?.set_aside ?? {}, facts.setAside);
      if (!changed.has(spec.server) && isSame) continue;
      this.#tools.bind(spec, facts, pid);
      log.append({ type: "mount.changed", ...this.#mountBody(spec, facts) });
      this.#tellSetAside({ spec, facts }, last?.set_aside ?? {});
      this.#emitChanges(spec.server, last?.tools ?? {});
    }
  }

  /** What the ledger says decides, so that a resumed run offers what the run before it did. */
  #offerResults(): void {
    const { state, pid } = this.#deps;
    const kept = state.ledger.keptResults();
    if (kept.length > 0) this.#tools.bindOwn(readResultBinding(kept, pid));
  }

  #mountOwn(): void {
    const { state, log, pid, own, agents } = this.#deps;
    for (const binding of agents) this.#tools.bindOwn(binding);
    for (const mount of own) {
      this.#mounts.mount(mount.path, mount.device);
      for (const binding of ownBindings(mount)) this.#tools.bindOwn(binding);
    }
    this.#mounts.mount(
      resultsPath(pid),
      new KeptResults({
        kept: () => state.ledger.keptResults(),
        getBlob: (ref) => log.journal.getBlob(ref),
        tokensMax: (tool) => this.#tools.get(tool)?.outputTokensMax,
      }),
    );
    for (const port of new Map([...this.#ports()].map((port) => [port.provider, port])).values()) {
      this.#mounts.mount(modelPath(port.provider), new ModelDevice(port));
    }
    // A call that a crash cut off goes out again before any turn.
    this.#offerResults();
  }

  /** The one that is asked first last, so that its provider's node tells of it. */
  #ports(): ModelPort<P>[] {
    const { model, fallback } = this.#deps;
    return [...(fallback === undefined ? [] : [fallback]), model];
  }

  async #runProgram(): Promise<RunEnd> {
    const { clock, log, state, observer, limits, settler, trace, intake, pid, children } =
      this.#deps;
    const { model, fallback, telemetry } = this.#deps;
    this.#mountOwn();
    const shared = { clock, log, tools: this.#tools, trace, telemetry, observer, limits, pid };
    const gate = new Gate({
      ...shared,
      ledger: state.ledger,
      mounts: this.#mounts,
      files: this.#files,
      intake,
      children,
    });
    this.#operator = new OperatorGate({
      ...shared,
      ledger: state.ledger,
      mounts: this.#mounts,
      files: this.#files,
      intake,
    });
    const models = new ModelGate<P>({
      ...shared,
      model,
      ...(fallback === undefined ? {} : { fallback }),
      summaryOf: (message, finishReason) => state.summaryOf(message, finishReason),
    });
    this.#runner = new Runner({
      clock,
      log,
      state,
      gate,
      models,
      settler,
      observer,
      limits,
      betweenTurns: () => this.#beforeTurn(),
    });
    return await this.#runner.run();
  }

  #mountFailedBody({ error }: MountFailure): EntryBody {
    const totals = this.#totals();
    if (this.#deps.keeps) return suspendedBody(new Map([["mount", error]]), totals);
    return failedBody(errorRecord(error), totals, EXIT_MOUNT);
  }

  #totals() {
    return this.#deps.state.ledger.endTotalsAt(this.#deps.clock.now());
  }

  async #endByStop(stop: Stop): Promise<RunEnd> {
    if (stop.kind === "kill") {
      this.#deps.log.append({ type: "signal", signal: stop.signal, origin: "user" });
    }
    return await this.#endBy(stopBody(stop, this.#totals()));
  }

  async #endBy(body: EntryBody): Promise<RunEnd> {
    const { log, state } = this.#deps;
    const entry = log.append(body);
    await log.barrier(entry.seq);
    return state.ledger.state.end ?? this.#journalEnd(new Error("The end was not folded"));
  }

  #journalEnd(thrown: unknown): RunEnd {
    const error = errorRecord(toSysError(thrown));
    return { state: "suspended", reason: "journal", reasons: ["journal"], error };
  }

  #emitEnd(end: RunEnd): void {
    const { observer } = this.#deps;
    if (end.state === "suspended") observer.emit({ type: "run.suspended", reason: end.reason });
    else observer.emit({ type: "run.exited", status: end.status, exit_code: end.exitCode });
  }
}

function sameNames(one: { [name: string]: string }, other: { [name: string]: string }): boolean {
  const names = (of: { [name: string]: string }) => JSON.stringify(Object.keys(of).sort());
  return names(one) === names(other);
}

function errorBody(error: SysError): ErrorBody {
  return {
    ...errorRecord(error),
    ...(error.syscall === undefined ? {} : { syscall: error.syscall }),
    ...(error.device === undefined ? {} : { device: error.device }),
  };
}
