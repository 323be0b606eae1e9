/** Children that lie in memory: what each comes to is the test's to say, and they know what they were asked and told. */
import { NO_TOTALS, type Totals } from "../../src/base/budget.ts";
import { SysError } from "../../src/base/errors.ts";
import type { SuspendReason } from "../../src/base/exit.ts";
import { agentBinding } from "../../src/kernel/agent_tools.ts";
import type { ChildOutcome, ChildPort, ChildRequest } from "../../src/kernel/children.ts";
import type { Stop } from "../../src/kernel/endings.ts";
import type { ToolBinding } from "../../src/kernel/tool_table.ts";
import type { LimitHit } from "../../src/policy/limits.ts";

export type Behaviour = (
  request: ChildRequest,
  options: { signal: AbortSignal; onStarted: (pid: number) => void },
) => ChildOutcome | Promise<ChildOutcome>;

export class ChildDouble implements ChildPort {
  readonly requests: ChildRequest[] = [];
  readonly stops: Stop[] = [];
  does: Behaviour;
  live: Totals = NO_TOTALS;
  above: LimitHit | undefined;
  #ids = 0;

  constructor(does: Behaviour) {
    this.does = does;
  }

  newRunId(): string {
    this.#ids += 1;
    return `child-${this.#ids}`;
  }

  async run(...[request, options]: Parameters<ChildPort["run"]>): Promise<ChildOutcome> {
    this.requests.push(request);
    return await this.does(request, options);
  }

  stop(stop: Stop): void {
    this.stops.push(stop);
  }

  bind(): void {}

  liveTotals(): Totals {
    return this.live;
  }

  limitAbove(): LimitHit | undefined {
    return this.above;
  }
}

export const AGENTS: readonly ToolBinding[] = ["a", "b"].map((name) =>
  agentBinding({ name, description: `Agent ${name}`, detach: false, outputTokensMax: 1000 })
);

export function exited(text: string, totals: Partial<Totals> = {}): ChildOutcome {
  return {
    kind: "exited",
    status: "completed",
    totals: { ...NO_TOTALS, ...totals },
    pid: 100,
    answer: { kind: "answer", isError: false, content: [{ type: "text", text }] },
  };
}

export function suspended(reason: SuspendReason): ChildOutcome {
  return { kind: "suspended", reason, error: new SysError("INTERRUPTED", `Child is ${reason}`) };
}
