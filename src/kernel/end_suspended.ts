/** Ends a run that nobody works on: a signal to a suspended run is its end, written by whoever gets its lease. */
import { SysError, toSysError } from "../base/errors.ts";
import { type EndSignal, EXIT_USAGE } from "../base/exit.ts";
import { openJournal } from "../journal/mod.ts";
import { stopBody } from "./endings.ts";
import type { KernelDeps } from "./launch.ts";
import { Ledger } from "./ledger.ts";

/** Appends the run's end, durable when the promise resolves. Rejects with INVALID for a run that has ended, or that another process holds. */
export async function endSuspended(
  kernel: KernelDeps,
  runId: string,
  signal: EndSignal,
): Promise<void> {
  const { journal, replay } = await openJournal(
    kernel.storage,
    `${kernel.runsFolder}/${runId}`,
    kernel,
  );
  try {
    const ledger = new Ledger();
    await replay({ entry: (entry) => ledger.fold(entry) });
    if (journal.lastSeq === 0 || ledger.state.end?.state === "exited") {
      throw new SysError("INVALID", "The run has ended already", {
        syscall: "Kill",
        device: runId,
        exitCode: EXIT_USAGE,
      });
    }
    journal.append({ type: "signal", signal, origin: "user" });
    journal.append(stopBody({ kind: "kill", signal }, ledger.state.totals));
    await journal.barrier();
  } catch (thrown) {
    throw toSysError(thrown);
  } finally {
    await journal.close();
  }
}
