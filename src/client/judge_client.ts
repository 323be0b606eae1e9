/**
 * Verdicts on servers over the daemon's socket, as they come.
 *
 * Leaving the iteration closes the connection, which tells the daemon to end what it started. A daemon that says nothing for too long is given up, as for a run.
 */
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import type { JudgeObserver, JudgeRequest } from "../base/server_verdict.ts";
import type { JudgeLine, Question } from "../base/wire.ts";
import { type DaemonSocket, errorOf } from "./daemon_socket.ts";
import { Silence, SILENCE_LIMITS, type SilenceLimits } from "./silence.ts";

const STATUS_HINT = "rnix daemon status tells about it";

/** Resolves once all verdicts are told. Rejects with the daemon's error, or DEVICE_DISCONNECTED and TIMEOUT (exit 8) where it was lost. */
export async function judgeServers(
  socket: DaemonSocket,
  request: JudgeRequest,
  observer: JudgeObserver,
  { clock, silence: limits = SILENCE_LIMITS }: {
    clock: Clock;
    silence?: SilenceLimits | undefined;
  },
): Promise<void> {
  const gaveUp = new AbortController();
  const silence = new Silence(clock, limits, {
    silent: (seconds) => observer.onWarning?.(`The daemon has said nothing for ${seconds} s`),
    back: () => observer.onWarning?.("The daemon is back"),
    lost: (seconds) =>
      gaveUp.abort(lost("TIMEOUT", `The daemon has said nothing for ${seconds} s`)),
  });
  try {
    for await (const line of socket.lines<JudgeLine>("judgeServers", request, gaveUp.signal)) {
      silence.heard();
      if (line.line === "judged") return;
      if (line.line === "error") throw errorOf(line);
      if (line.line === "verdict") observer.onVerdict(line.index, line.verdict);
      else if (line.line === "notice") observer.onWarning?.(line.message);
      else if (line.line === "question") void answer(socket, observer, line);
    }
    throw lost("DEVICE_DISCONNECTED", "The daemon was lost while servers were looked at");
  } finally {
    silence.close();
  }
}

async function answer(
  socket: DaemonSocket,
  observer: JudgeObserver,
  { id, question }: { id: string; question: Question },
): Promise<void> {
  const given = question.kind === "trust"
    ? await observer.confirmTrust?.(question.question).catch(() => false)
    : undefined;
  await socket.value("answer", { id, answer: given ?? null }).catch(() => {});
}

function lost(code: "TIMEOUT" | "DEVICE_DISCONNECTED", message: string): SysError {
  return new SysError(code, message, { exitCode: EXIT_UNREACHABLE, hint: STATUS_HINT });
}
