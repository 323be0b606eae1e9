import assert from "node:assert/strict";
import { systemClock } from "../base/clock.ts";
import type { EntryBody } from "../journal/entry.ts";
import { Ledger } from "../kernel/ledger.ts";
import { reportOf, rowOf } from "./report.ts";
import type { RunView } from "./runs.ts";

/** A run that began `agoMs` ago and made one request a second later. */
function begun(agoMs: number): Ledger {
  const ledger = new Ledger();
  const ts = systemClock.now() - agoMs;
  const bodies: EntryBody[] = [
    {
      type: "run.started",
      run_id: "01990000-0000-7000-8000-00000f3a9c2e",
      pid: 3,
      program: "agent",
      agent: "a",
      spec: { sha256: "", bytes: 0 },
      intent: "i",
      cwd: "/",
      model: "m",
      budget: {},
      rnix_version: "0",
    },
    {
      type: "model.request",
      turn: 1,
      attempt: 1,
      provider: "p",
      model: "m",
      request_sha256: "",
      tokens_estimate: 1,
    },
  ];
  bodies.forEach((body, index) =>
    ledger.fold({ v: 1, seq: index + 1, ts: ts + index * 1000, synced: 0, ...body })
  );
  return ledger;
}

function view(ledger: Ledger, state: RunView["state"]): RunView {
  return { runId: ledger.identity.runId, ledger, state, notices: [] };
}

Deno.test("a run at work has been active up to now, an interrupted one up to its last entry", () => {
  const ledger = begun(60_000);
  const { elapsed_ms } = rowOf(view(ledger, "running"), []);
  assert.ok(elapsed_ms >= 60_000 && elapsed_ms < 120_000, String(elapsed_ms));
  assert.equal(rowOf(view(ledger, "suspended"), []).elapsed_ms, 1000);
  const end = { state: "suspended", reason: "interrupted", reasons: ["interrupted"] } as const;
  assert.equal(reportOf({ end: { ...end, reasons: [] }, ledger }, 3).elapsed_ms, 1000);
});

Deno.test("the hint of a report's error has the name of the run that can be typed", () => {
  for (
    const [hint, told] of [
      ["Go on: rnix resume RUN --max-turns N", "Go on: rnix resume 0f3a9c2e --max-turns N"],
      ["rnix journal verify RUN says more", "rnix journal verify 0f3a9c2e says more"],
    ] as const
  ) {
    const error = { code: "DRIVER", message: "m", hint };
    const end = { state: "suspended", reason: "limit", reasons: ["limit"], error } as const;
    const ledger = begun(0);
    const made = reportOf({ end: { ...end, reasons: [...end.reasons] }, ledger }, 3);
    assert.equal(made.error?.hint, told);
  }
});
