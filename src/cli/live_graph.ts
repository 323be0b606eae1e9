/**
 * The graph of a workflow while one stays with its run: on a terminal it stands below what is told of the run, in place of a line for every call.
 *
 * It begins with the run's start, pauses while a person is asked, and its last state stays.
 */
import type { Clock } from "../base/clock.ts";
import type { GraphView } from "../base/graph.ts";
import type { RunEvent } from "../base/operations.ts";
import type { Context } from "./command.ts";
import { GraphBlock } from "./graph_block.ts";
import type { Floor } from "./question.ts";

/** Between two looks, milliseconds. */
const LOOK_MS = 300;
/** What a workflow has in place of a model. */
const WORKFLOW = "workflow";

/** Undefined where nobody would see it: no terminal, less to be told, or more. */
export function liveGraph(context: Context): LiveGraph | undefined {
  const { stderr, clock, size } = context.world;
  if (!stderr.isTerminal || context.loudness !== "full" || size() === undefined) return undefined;
  const look = async (of: string) => {
    const system = await context.system();
    return await system.graph({ of, client: { cwd: context.world.cwd, env: context.env } });
  };
  return new LiveGraph(new GraphBlock(stderr, size), clock, look);
}

/** Shows one run; see `takes`. */
export class LiveGraph implements Floor {
  readonly #block: GraphBlock;
  readonly #clock: Clock;
  readonly #look: (run: string) => Promise<GraphView>;
  /** The run, once it is known to be a workflow. */
  #run: string | undefined;
  #isHeld = false;
  #cancel = () => {};
  #looking: Promise<void> = Promise.resolve();

  constructor(block: GraphBlock, clock: Clock, look: (run: string) => Promise<GraphView>) {
    this.#block = block;
    this.#clock = clock;
    this.#look = look;
  }

  /** Whether it shows this by itself; what it doesn't is told where it stands. */
  takes(event: RunEvent): boolean {
    if (event.type === "run.started" || event.type === "run.resumed") {
      if (event.model === WORKFLOW) this.#begin(event.run_id);
      return false;
    }
    if (this.#run === undefined) return false;
    if (event.type.startsWith("call.") || event.type.startsWith("child.")) return true;
    this.#block.erase();
    return false;
  }

  /** Makes room for what somebody else writes. */
  erase(): void {
    this.#block.erase();
  }

  take(): void {
    this.#isHeld = true;
    this.#block.erase();
  }

  giveBack(): void {
    this.#isHeld = false;
  }

  /** Shows how it ended. */
  async finish(): Promise<void> {
    this.#cancel();
    await this.#looking;
    if (this.#run !== undefined) await this.#paint(this.#run);
    this.#run = undefined;
  }

  #begin(run: string): void {
    this.#cancel();
    this.#run = run;
    const next = () => {
      if (this.#run !== run) return;
      this.#looking = this.#paint(run).then(() => {
        if (this.#run === run) this.#cancel = this.#clock.after(LOOK_MS, next);
      });
    };
    this.#cancel = this.#clock.after(0, next);
  }

  /** What can't be looked at (a model that is called like a workflow) is left to lines. */
  async #paint(run: string): Promise<void> {
    try {
      const view = await this.#look(run);
      if (!this.#isHeld && this.#run === run) this.#block.paint(view);
    } catch {
      this.#run = undefined;
    }
  }
}
