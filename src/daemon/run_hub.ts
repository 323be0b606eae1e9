/**
 * A run at work and all who follow it: events go to every follower, questions to those who can be asked.
 *
 * A follower may come and go at any time; none can hold the run up. The first decision wins; with nobody to ask there is none.
 */
import type { Clock } from "../base/clock.ts";
import type {
  RunEvent,
  RunHandle,
  RunObserver,
  TrustQuestion,
  UnknownCall,
  UnknownDecision,
} from "../base/operations.ts";
import type { Consent } from "./agent_source.ts";

/** Streamed text of the present turn that is kept for who joins in the middle of it, characters. */
export const STREAMED_CHARS_MAX = 1 << 20;

/** How a run's client gives consent: asked through the hub, told of what `--trust` has covered before there is a run. */
export function consentBy(hub: RunHub, trust: boolean, clock: Clock): Consent {
  return {
    trust,
    observer: hub,
    notice: (message) => hub.onEvent({ type: "notice", pid: 0, ts: clock.now(), message }),
  };
}

type Delta = Extract<RunEvent, { type: "model.delta" }>;

export class RunHub implements RunObserver {
  readonly #followers = new Set<RunObserver>();
  /** Of the present turn, whose reply isn't durable yet: neighbours of one kind as one. */
  #streamed: Delta[] = [];
  #streamedChars = 0;
  /** Set once the run is at work. */
  handle: RunHandle | undefined;

  constructor(first: RunObserver) {
    this.#followers.add(first);
  }

  get followers(): number {
    return this.#followers.size;
  }

  /** Text that was streamed in the present turn and is in no journal yet. */
  get streamed(): readonly RunEvent[] {
    return this.#streamed;
  }

  /** Adds a follower; the returned function takes it away. */
  add(follower: RunObserver): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  onEvent(event: RunEvent): void {
    this.#keep(event);
    for (const follower of this.#followers) {
      try {
        follower.onEvent(event);
      } catch {
        // A follower that fails must not keep the others from their events.
      }
    }
  }

  #keep(event: RunEvent): void {
    if (event.type === "model.started" || event.type === "model.finished") {
      this.#streamed = [];
      this.#streamedChars = 0;
    }
    if (event.type !== "model.delta") return;
    this.#streamedChars += event.text.length;
    if (this.#streamedChars > STREAMED_CHARS_MAX) return;
    const last = this.#streamed.at(-1);
    if (last?.kind !== event.kind) this.#streamed.push(event);
    else this.#streamed.splice(-1, 1, { ...last, text: last.text + event.text });
  }

  async decideUnknown(
    call: UnknownCall,
    signal: AbortSignal,
  ): Promise<UnknownDecision | undefined> {
    const answered = new AbortController();
    const either = AbortSignal.any([signal, answered.signal]);
    const asked = [...this.#followers].flatMap((follower) =>
      follower.decideUnknown === undefined ? [] : [follower.decideUnknown(call, either)]
    );
    const decisions = asked.map(async (answer) => {
      const decision = await answer;
      if (decision === undefined) throw new Error("No decision");
      return decision;
    });
    try {
      return await Promise.any(decisions);
    } catch {
      return undefined;
    } finally {
      answered.abort();
    }
  }

  async confirmTrust(question: TrustQuestion): Promise<boolean> {
    for (const follower of this.#followers) {
      if (await follower.confirmTrust?.(question)) return true;
    }
    return false;
  }
}
