/** The system as a command sees it: what is live goes to the daemon, what only reads goes to the state folder; each side is loaded when first used. */
import type {
  AttachFrom,
  JournalFindings,
  LiveSystem,
  LogLine,
  MountRow,
  ProcessRow,
  Reader,
  ResumePlan,
  ResumeRequest,
  RunEvent,
  RunHandle,
  RunObserver,
  RunReport,
  RunRequest,
  RunSignal,
  System,
} from "../base/operations.ts";

export class SplitSystem implements System {
  readonly #live: () => Promise<LiveSystem>;
  readonly #reader: () => Promise<Reader>;

  constructor(live: () => Promise<LiveSystem>, reader: () => Promise<Reader>) {
    this.#live = live;
    this.#reader = reader;
  }

  async run(request: RunRequest, observer: RunObserver): Promise<RunHandle> {
    return await (await this.#live()).run(request, observer);
  }

  async resume(request: ResumeRequest, observer: RunObserver): Promise<RunHandle> {
    return await (await this.#live()).resume(request, observer);
  }

  async attach(run: string, from: AttachFrom, observer: RunObserver): Promise<RunHandle> {
    return await (await this.#live()).attach(run, from, observer);
  }

  async signal(run: string, signal: RunSignal): Promise<void> {
    await (await this.#live()).signal(run, signal);
  }

  async processes(options: { all: boolean }): Promise<ProcessRow[]> {
    return await (await this.#reader()).processes(options);
  }

  async report(run: string): Promise<RunReport | undefined> {
    return await (await this.#reader()).report(run);
  }

  async planResume(request: ResumeRequest): Promise<ResumePlan> {
    return await (await this.#reader()).planResume(request);
  }

  async *pastEvents(run: string): AsyncGenerator<RunEvent> {
    yield* (await this.#reader()).pastEvents(run);
  }

  async mounts(): Promise<MountRow[]> {
    return await (await this.#reader()).mounts();
  }

  async *mountLogs(mount: string): AsyncGenerator<LogLine> {
    yield* (await this.#reader()).mountLogs(mount);
  }

  async verifyJournal(run: string): Promise<JournalFindings> {
    return await (await this.#reader()).verifyJournal(run);
  }
}
