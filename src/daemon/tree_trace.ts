/**
 * The traces of a run and of all below it as one: a child's is read from its beginning once its parent's says that it was spawned.
 *
 * Of a tree that is over records come in the order of their times; of one at work as they are written.
 */
import { isJsonObject } from "../base/json.ts";
import type { TraceItem } from "../base/operations.ts";

/** Reads the trace of one run. */
export type ReadTrace = (runId: string) => AsyncGenerator<TraceItem>;

export interface TreeTrace {
  read: ReadTrace;
  /** The first traces: of the run, and of what is at work below it already. */
  first: readonly { runId: string; items: AsyncGenerator<TraceItem> }[];
  /** Whether it is at work: nobody waits for the slowest trace then. */
  isLive: boolean;
}

/** A trace that is read, and its next record once there is one. */
interface Head {
  items: AsyncGenerator<TraceItem>;
  next: Promise<Head>;
  item: TraceItem | undefined;
}

/** Ends with the last of them. */
export async function* readTreeTrace(
  { read, first, isLive }: TreeTrace,
): AsyncGenerator<TraceItem> {
  const known = new Set(first.map(({ runId }) => runId));
  const heads = new Set(first.map(({ items }) => headOf(items)));
  try {
    while (heads.size > 0) {
      const pending = [...heads].map(({ next }) => next);
      const ready = isLive ? [await Promise.race(pending)] : await Promise.all(pending);
      const head = earliest(ready);
      const { item } = head;
      if (item === undefined) {
        heads.delete(head);
        continue;
      }
      yield item;
      const child = spawnedBy(item);
      if (child !== undefined && !known.has(child)) {
        known.add(child);
        heads.add(headOf(read(child)));
      }
      head.next = advanced(head);
    }
  } finally {
    await Promise.all([...heads].map(({ items }) => items.return(undefined)));
  }
}

function headOf(items: AsyncGenerator<TraceItem>): Head {
  const head: Head = { items, item: undefined, next: Promise.reject(new Error("Not begun")) };
  head.next.catch(() => {});
  head.next = advanced(head);
  return head;
}

/** A trace that can't be read, such as of a run that was removed, ends. */
async function advanced(head: Head): Promise<Head> {
  const { value, done } = await head.items.next().catch(() => ({ value: undefined, done: true }));
  head.item = done === true ? undefined : value;
  return head;
}

/** One that has ended, else the one with the earliest record; one without a time goes first. */
function earliest(heads: readonly Head[]): Head {
  const timeOf = ({ item }: Head) => item?.kind === "record" ? item.record.timestamp_ms : -Infinity;
  return heads.reduce((least, head) => timeOf(head) < timeOf(least) ? head : least);
}

/** The run id of a child that this record begins. */
function spawnedBy(item: TraceItem): string | undefined {
  if (item.kind !== "record" || item.record.syscall !== "Spawn") return undefined;
  const { run_id } = isJsonObject(item.record.args) ? item.record.args : {};
  return typeof run_id === "string" ? run_id : undefined;
}
