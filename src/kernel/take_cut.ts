/** What a resume appends before anything else where records were cut that may have been durable; a plan folds the same. */
import type { EntryBody } from "../journal/entry.ts";
import type { Cut } from "../journal/mod.ts";
import type { Ledger } from "./ledger.ts";
import type { PromptHead } from "./program.ts";
import type { RunState } from "./run_state.ts";

/** Takes entries that are folded at once. */
export interface FoldedLog {
  append(body: EntryBody): void;
}

/** Records that were cut may have had effects: calls that may have left count as unknown, and turn numbers of lost replies aren't used again. */
export function takeCut<S, P extends PromptHead>(
  cut: Cut,
  state: RunState<S, P>,
  log: FoldedLog,
): void {
  const { ledger } = state;
  if (cut.lastSeq < ledger.state.cutSeq) return;
  for (const intent of cut.intents) {
    const { call, attempt, tool, device, effect, input_sha256, idempotency_key } = intent;
    if (effect === "read" || ledger.hasStarted(`${call}#${attempt}`)) continue;
    const type = "call.intent";
    log.append({ type, call, attempt, tool, device, effect, input_sha256, idempotency_key });
    appendUnknown(log, call, attempt);
  }
  for (const action of state.decide()) {
    if (action.kind !== "call" || ledger.hasStarted(action.key)) continue;
    const tool = toolRecord(ledger, action.tool);
    if (tool === undefined || tool.effect === "read") continue;
    log.append({
      type: "call.intent",
      call: action.call,
      attempt: action.attempt,
      tool: action.tool,
      device: tool.device,
      effect: tool.effect,
      input_sha256: "",
      idempotency_key: `${ledger.identity.runId}/${action.call}`,
    });
    appendUnknown(log, action.call, action.attempt);
  }
  log.append({ type: "journal.cut", from_seq: cut.seq, records: cut.records });
}

function appendUnknown(log: FoldedLog, call: string, attempt: number): void {
  log.append({
    type: "call.result",
    call,
    attempt,
    duration_ms: 0,
    outcome: "unknown",
    cause: "cut",
  });
}

function toolRecord(ledger: Ledger, name: string) {
  for (const [server, mount] of Object.entries(ledger.state.mounts)) {
    for (const [tool, record] of Object.entries(mount.tools)) {
      if (record.name !== name) continue;
      const device = `/mnt/mcp/${server}/tools/${encodeURIComponent(tool)}`;
      return { effect: record.effect, device };
    }
  }
  return undefined;
}
