/**
 * What a run at work has in flight, from its journal: each call and each model request between the entry that begins it and the one that ends it.
 *
 * A new process of the run has none of what was under way in the one before it, but for its children, which it takes up.
 */
import type { InFlight } from "../base/operations.ts";
import type { Entry } from "../journal/entry.ts";

type Begun = Omit<InFlight, "pid">;

/** The fold; it is given all entries, in their order. */
export class InFlightFold {
  readonly #begun = new Map<string, Begun>();
  #pid = 0;

  take(entry: Entry): void {
    const { ts: started_ms } = entry;
    switch (entry.type) {
      case "run.started":
      case "run.resumed":
        this.#pid = entry.pid;
        return this.#keepChildren(started_ms);
      case "model.request":
        return this.#begin("model", {
          syscall: "Model",
          path: `/dev/llm/${entry.provider}`,
          started_ms,
        });
      case "model.reply":
      case "context.exceeded":
      case "context.compacted":
        return void this.#begun.delete("model");
      case "call.intent": {
        const syscall = entry.child_run_id === undefined ? "Write" : "Wait";
        return this.#begin(entry.call, { syscall, path: entry.device, started_ms });
      }
      case "access.intent": {
        const syscall = entry.operation === "read" ? "Read" : "Write";
        return this.#begin(entry.call, { syscall, path: entry.device, started_ms });
      }
      case "call.result":
      case "call.settled":
      case "access.result":
        return void this.#begun.delete(entry.call);
      case "run.suspended":
      case "run.exited":
        return this.#keepChildren(started_ms);
    }
  }

  /** Oldest first. */
  list(): InFlight[] {
    return [...this.#begun.values()].map((begun) => ({ pid: this.#pid, ...begun }))
      .toSorted((a, b) => a.started_ms - b.started_ms);
  }

  #begin(key: string, begun: Begun): void {
    this.#begun.set(key, begun);
  }

  #keepChildren(nowMs: number): void {
    for (const [key, begun] of this.#begun) {
      if (begun.syscall === "Wait") this.#begun.set(key, { ...begun, started_ms: nowMs });
      else this.#begun.delete(key);
    }
  }
}
