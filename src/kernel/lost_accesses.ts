/** What persons did on a run's devices when rnix was ended in the middle of it: told once, never repeated, and nothing that a run waits for. */
import type { EntryBody, UnknownCause } from "../journal/entry.ts";
import type { Ledger, OpenAccess } from "./ledger.ts";

/** Takes entries that are folded at once. */
interface Appending {
  append(body: EntryBody): void;
}

/** The entry that says of an access that nobody knows what it came to. */
export function lostAccess(call: string, cause: UnknownCause): EntryBody {
  return {
    type: "access.result",
    call,
    origin: "operator",
    duration_ms: 0,
    outcome: "unknown",
    cause,
  };
}

/** Tells of a dead process's accesses, and notes in the journal that they are lost: told before it is noted, so that a crash in between tells it again and not never. */
export function takeLostAccesses(
  ledger: Ledger,
  log: Appending,
  tell: (message: string) => void,
): void {
  for (const open of ledger.openAccesses()) {
    if (open.effect !== "read") tell(lostNotice(open));
    log.append(lostAccess(open.call, "crash"));
  }
}

/** What is told of an access that was lost. */
export function lostNotice({ call, device }: OpenAccess): string {
  return `rnix was ended while a person's write to "${device}" (${call}) was on its way: it may or may not have taken effect, and isn't repeated`;
}
