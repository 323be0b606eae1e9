/** Joins a follower to a run at work, from its first event or from now on, without a gap and without telling anything twice. */
import type { AttachFrom, RunEvent, RunHandle, RunObserver } from "../base/operations.ts";
import type { Storage } from "../base/storage.ts";
import { eventsOfRun } from "./past_events.ts";
import type { RunHub } from "./run_hub.ts";

export interface Joining {
  from: AttachFrom;
  observer: RunObserver;
  storage: Storage;
  /** The run's. */
  folder: string;
}

/** The run's handle, its `done` after which the follower hears nothing any more. */
export async function joinRun(
  hub: RunHub,
  handle: RunHandle,
  { from, observer, storage, folder }: Joining,
): Promise<RunHandle> {
  if (from === "start") return await joinFromStart(hub, handle, { observer, storage, folder });
  return leaving(handle, hub.add(observer));
}

/** What was streamed in the present turn, and events that come while the past is read, wait; of these, what the past has told already is left out. */
async function joinFromStart(
  hub: RunHub,
  handle: RunHandle,
  { observer, storage, folder }: Omit<Joining, "from">,
): Promise<RunHandle> {
  const told = new Set<string>();
  let waiting: RunEvent[] | undefined = [...hub.streamed];
  const leave = hub.add({
    ...followerOf(observer),
    onEvent(event) {
      if (waiting !== undefined) waiting.push(event);
      else observer.onEvent(event);
    },
  });
  for await (const event of eventsOfRun(storage, folder)) {
    const key = keyOf(event);
    if (key !== undefined && event.type !== "model.delta") told.add(key);
    observer.onEvent(event);
  }
  for (const event of waiting) {
    const key = keyOf(event);
    if (key === undefined || !told.has(key)) observer.onEvent(event);
  }
  waiting = undefined;
  return leaving(handle, leave);
}

function followerOf(observer: RunObserver): RunObserver {
  return {
    onEvent: (event) => observer.onEvent(event),
    ...(observer.decideUnknown === undefined ? {} : {
      decideUnknown: async (call, signal) => await observer.decideUnknown?.(call, signal),
    }),
  };
}

function leaving(handle: RunHandle, leave: () => void): RunHandle {
  return { ...handle, done: handle.done.finally(leave) };
}

/** What makes an event one of its kind; undefined for those that come many times. */
function keyOf(event: RunEvent): string | undefined {
  const { type, pid } = event;
  if ("call" in event && "attempt" in event) return `${pid} ${type} ${event.call}#${event.attempt}`;
  if ("call" in event) return `${pid} ${type} ${event.call}`;
  if ("server" in event) return `${pid} ${type} ${event.server}`;
  if (type === "notice") return undefined;
  // The past has a turn's text as a whole, once its reply is there.
  if (type === "model.delta") return `${pid} model.finished ${event.turn}`;
  if ("turn" in event) return `${pid} ${type} ${event.turn}`;
  return `${pid} ${type}`;
}
