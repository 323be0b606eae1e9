/**
 * A scenario spoken over stdio.
 *
 * Usage: `deno run -A scripted_server.ts '<scenario as JSON>'|@FILE [fed]`; the language is in `scripted_scenario.ts`. `fed`: the first line of stdin is the pid of the process that feeds it, whose end shuts stdin.
 */
import { type Fields, isFields, pause, readLines, type Value, writeOut } from "./rpc_stdio.ts";
import { type Exchange, givenScenario, ScenarioPlayer } from "./scripted_player.ts";
import type { Step } from "./scripted_scenario.ts";

const player = new ScenarioPlayer(givenScenario(Deno.args[0]));
const { scenario } = player;
/** The process that holds the reading end of the client's pipe. */
let feeder: number | undefined;
let stdinClosed = false;
let waiting = "";

function send(message: Fields): void {
  const { id } = message;
  const shaped = scenario.idsAsText && typeof id === "number"
    ? { ...message, id: String(id) }
    : message;
  const whole = { jsonrpc: "2.0", ...shaped };
  const text = JSON.stringify(scenario.batches ? [whole] : whole) +
    (scenario.crlf ? "\r\n" : "\n");
  if (scenario.mergeMs === undefined) return writeShaped(text);
  if (waiting === "") {
    setTimeout(() => {
      const together = waiting;
      waiting = "";
      writeShaped(together);
    }, scenario.mergeMs);
  }
  waiting += text;
}

function writeShaped(text: string): void {
  const bytes = new TextEncoder().encode(text);
  const size = scenario.chunkBytes ?? bytes.length;
  for (let start = 0; start < bytes.length; start += size) {
    writeOut(bytes.subarray(start, start + size));
  }
}

async function perform(step: Step): Promise<"goes on"> {
  if (step.stderr !== undefined) writeOut(`${step.stderr}\n`, 2);
  if (step.stderrBytes !== undefined) writeOut("e".repeat(step.stderrBytes) + "\n", 2);
  if (step.noise !== undefined) writeOut(`${step.noise}\n`);
  if (step.floodBytes !== undefined) {
    const piece = "f".repeat(1 << 20);
    for (let left = step.floodBytes; left > 0; left -= piece.length) writeOut(piece);
  }
  if (step.closeStdin && feeder !== undefined) {
    stdinClosed = true;
    Deno.kill(feeder, "SIGKILL");
    while (isThere(feeder)) await pause(1);
  }
  return "goes on";
}

function isThere(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}

const exchange: Exchange = {
  send,
  perform,
  async exit(code) {
    // What waits to be written together is written first.
    if (waiting !== "") await pause(2 * (scenario.mergeMs ?? 0));
    Deno.exit(code);
  },
};

if (scenario.ignoreTerm) {
  Deno.addSignalListener("SIGTERM", () => {});
  Deno.addSignalListener("SIGINT", () => {});
}
await player.start(exchange);
await readLines((line) => {
  const message: Value = JSON.parse(line);
  if (isFields(message)) void player.take(message, exchange);
  else if (Deno.args[1] === "fed" && typeof message === "number") feeder ??= message;
});
if (scenario.ignoreEof || stdinClosed) await new Promise(() => setInterval(() => {}, 1 << 30));
