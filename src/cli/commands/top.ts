/** `rnix top`: processes and mounts on the whole screen, live, with keys to pause and end them. */
import { sleep } from "../../base/clock.ts";
import type { ProcessRow, System, TraceRow } from "../../base/operations.ts";
import type { Command, Context, HeardSignal, Outcome } from "../command.ts";
import { failureOf } from "../failure.ts";
import { topScreen, topText, type TopView } from "../top_screen.ts";

const REFRESH_MS = 1_000;
/** Calls of a process that are kept for the screen. */
const CALLS_MAX = 100;
/** Processes whose calls are followed. */
const FOLLOWED_MAX = 50;
const HEARD: readonly HeardSignal[] = ["SIGINT", "SIGTERM", "SIGHUP"];

const ENTER = "\x1b[?1049h\x1b[?25l";
const LEAVE = "\x1b[?25h\x1b[?1049l";
const [UP, DOWN, INTERRUPT] = ["\x1b[A", "\x1b[B", "\x03"];

export const top: Command = {
  name: "top",
  summary: "Watch processes and their mounts on the whole screen",
  positionals: [],
  flags: [],
  details:
    `Keys: up and down select, p pauses, k ends, s shows the calls of the selected process, q leaves.
Where stdout is no terminal, and with --json, the present state is told once.`,
  async run(_, context) {
    const { stdout, stdin } = context.world;
    const system = await context.system();
    const live = new LiveView(system, context);
    if (context.json || !stdout.isTerminal || !stdin.isTerminal) {
      return await once(live);
    }
    const leaving = new AbortController();
    const forget = HEARD.map((signal) => context.world.onSignal(signal, () => leaving.abort()));
    stdin.setRaw(true);
    stdout.write(ENTER);
    try {
      await Promise.race([live.watch(leaving.signal), live.obey(leaving)]);
    } finally {
      leaving.abort();
      for (const each of forget) each();
      stdout.write(LEAVE);
      await stdout.flush();
      stdin.setRaw(false);
    }
    return { exitCode: 0, streamed: true };
  },
};

async function once(live: LiveView): Promise<Outcome> {
  await live.refresh();
  const { rows, mounts } = live.view;
  return { exitCode: 0, data: { processes: rows, mounts }, text: topText(live.view) };
}

class LiveView {
  readonly #system: System;
  readonly #context: Context;
  readonly #calls = new Map<string, TraceRow[]>();
  readonly #followed = new Map<string, AbortController>();
  /** What `y` does. */
  #asked: (() => Promise<void>) | undefined;
  view: TopView;

  constructor(system: System, context: Context) {
    this.#system = system;
    this.#context = context;
    this.view = {
      rows: [],
      mounts: [],
      calls: this.#calls,
      selected: undefined,
      tracing: false,
      nowMs: context.world.clock.now(),
      message: undefined,
    };
  }

  async refresh(): Promise<void> {
    const [rows, mounts] = await Promise.all([
      this.#system.processes({ all: false }),
      this.#system.mounts(),
    ]);
    const sorted = rows.toSorted((a, b) => a.pid - b.pid);
    const selected = sorted.some(({ run_id }) => run_id === this.view.selected)
      ? this.view.selected
      : sorted[0]?.run_id;
    const nowMs = this.#context.world.clock.now();
    this.view = { ...this.view, rows: sorted, mounts, selected, nowMs };
  }

  /** Paints again and again until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { clock } = this.#context.world;
    try {
      while (!signal.aborted) {
        try {
          await this.refresh();
          this.#follow(signal);
        } catch (thrown) {
          this.#say(failureOf(thrown).error.message);
        }
        this.#paint();
        await sleep(clock, REFRESH_MS, signal).catch(() => {});
      }
    } finally {
      for (const each of this.#followed.values()) each.abort();
    }
  }

  /** Does what the keys say, until the one that leaves. */
  async obey(leaving: AbortController): Promise<void> {
    while (!leaving.signal.aborted) {
      const key = await this.#context.world.stdin.key(leaving.signal);
      if (key === undefined || key === "q" || key === INTERRUPT) return;
      await this.#press(key).catch((thrown) => this.#say(failureOf(thrown).error.message));
      this.#paint();
    }
  }

  async #press(key: string): Promise<void> {
    const asked = this.#asked;
    this.#asked = undefined;
    this.#say(undefined);
    if (asked !== undefined) return key === "y" ? await asked() : undefined;
    const row = this.view.rows.find(({ run_id }) => run_id === this.view.selected);
    if (key === UP || key === DOWN) return this.#select(key === UP ? -1 : 1);
    if (key === "s") this.view = { ...this.view, tracing: !this.view.tracing };
    if (row === undefined) return;
    if (key === "p") {
      await this.#system.signal(row.run_id, "PAUSE");
      this.#say(`PID ${row.pid} is told to pause`);
    }
    if (key === "k") this.#askToEnd(row);
  }

  #askToEnd({ pid, run_id }: ProcessRow): void {
    this.#say(`End PID ${pid}? y/n`);
    this.#asked = async () => {
      await this.#system.signal(run_id, "TERM");
      this.#say(`PID ${pid} is told to end`);
    };
  }

  #select(step: number): void {
    const { rows, selected } = this.view;
    const at = rows.findIndex(({ run_id }) => run_id === selected);
    const next = rows[Math.max(0, Math.min(at + step, rows.length - 1))];
    if (next !== undefined) this.view = { ...this.view, selected: next.run_id };
  }

  /** Follows the calls of what is at work, and lets go of what is not. */
  #follow(signal: AbortSignal): void {
    const live = this.view.rows.filter(({ state }) => state === "running").slice(0, FOLLOWED_MAX);
    for (const [run, stop] of this.#followed) {
      if (live.some(({ run_id }) => run_id === run)) continue;
      stop.abort();
      this.#followed.delete(run);
    }
    for (const { run_id } of live) {
      if (this.#followed.has(run_id)) continue;
      const stop = new AbortController();
      this.#followed.set(run_id, stop);
      this.#keepCalls(run_id, AbortSignal.any([stop.signal, signal])).catch(() => {});
    }
  }

  async #keepCalls(run: string, signal: AbortSignal): Promise<void> {
    const calls = this.#calls.get(run) ?? [];
    this.#calls.set(run, calls);
    for await (const item of this.#system.trace(run, "now", signal)) {
      if (item.kind !== "record") continue;
      calls.push(item.record);
      if (calls.length > CALLS_MAX) calls.shift();
    }
  }

  #say(message: string | undefined): void {
    this.view = { ...this.view, message };
  }

  #paint(): void {
    const { stdout, size } = this.#context.world;
    const lines = topScreen(this.view, size() ?? { columns: 80, rows: 24 }, this.#context.style);
    stdout.offer(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join("\r\n")}\x1b[J`);
  }
}
