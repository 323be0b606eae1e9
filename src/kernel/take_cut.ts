/** What a resume appends before anything else where records were cut that may have been durable; a plan folds the same. */
import {
  AGENT_TOOL_PREFIX,
  BUILTIN_EFFECTS,
  BUILTIN_TOOLS,
  FILES_DEVICE,
  SHELL_DEVICE,
} from "../base/builtin_tools.ts";
import type { EffectClass } from "../base/effect.ts";
import type { EntryBody } from "../journal/entry.ts";
import type { Cut } from "../journal/mod.ts";
import { agentDevice } from "./agent_tools.ts";
import type { Ledger, OpenAccess } from "./ledger.ts";
import { lostAccess } from "./lost_accesses.ts";
import type { PromptHead } from "./program.ts";
import type { RunState } from "./run_state.ts";

/** Takes entries that are folded at once. */
export interface FoldedLog {
  append(body: EntryBody): void;
}

/** Records that were cut may have had effects: calls that may have left count as unknown, and turn numbers of lost replies aren't used again. Gives what persons did that is lost with them. */
export function takeCut<S, P extends PromptHead>(
  cut: Cut,
  state: RunState<S, P>,
  log: FoldedLog,
): OpenAccess[] {
  const { ledger } = state;
  if (cut.lastSeq < ledger.state.cutSeq) return [];
  for (const intent of cut.intents) {
    const { call, attempt, tool, device, effect, input_sha256, idempotency_key } = intent;
    if (effect === "read" || ledger.hasStarted(`${call}#${attempt}`)) continue;
    const { child_run_id } = intent;
    const child = child_run_id === undefined ? {} : { child_run_id };
    const facts = { call, attempt, tool, device, effect, input_sha256, idempotency_key, ...child };
    log.append({ type: "call.intent", ...facts });
    // A child is asked what it came to.
    if (child_run_id === undefined) appendUnknown(log, call, attempt);
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
  const lost = cut.accesses.filter(({ effect, call }) =>
    effect !== "read" && !ledger.hasAccess(call)
  );
  for (const { v: _v, seq: _seq, ts: _ts, synced: _synced, ...access } of lost) {
    log.append(access);
    log.append(lostAccess(access.call, "cut"));
  }
  log.append({ type: "journal.cut", from_seq: cut.seq, records: cut.records });
  return lost;
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
  return ownRecord(name);
}

/** The same of a tool of rnix itself. Of a child that was lost with its intent nobody knows the run any more, so it counts as a call that writes. */
function ownRecord(name: string): { effect: EffectClass; device: string } | undefined {
  const own = BUILTIN_TOOLS.find((each) => each === name);
  if (own !== undefined) {
    const device = own === "Bash" ? SHELL_DEVICE : FILES_DEVICE;
    return { effect: BUILTIN_EFFECTS[own], device: `${device}/tools/${own}` };
  }
  if (!name.startsWith(AGENT_TOOL_PREFIX)) return undefined;
  return { effect: "write", device: agentDevice(name.slice(AGENT_TOOL_PREFIX.length)) };
}
