/** Agents that start agents, in a home of their own: how the tests write them, and what they look at. */
import type {
  ProcessRow,
  ResumeRequest,
  RunEvent,
  RunHandle,
  RunObserver,
  RunReport,
} from "../../src/base/operations.ts";
import type { ModelHome } from "./model_home.ts";

/** A call that starts an agent. */
export const ask = (agent: string, intent = "Pay it") => ({
  tool: `agent__${agent}`,
  input: { intent },
});
/** A payment into the ledger. */
export const pay = (note: string, more = {}) => ({ tool: "pay", input: { note, ...more } });

/** Writes an agent that plays `turns`. */
export function put(home: ModelHome, name: string, turns: object[], more = ""): void {
  home.write(`${name}/script.yaml`, JSON.stringify({ turns, final: "Nothing more." }));
  home.write(
    `${name}/agent.yaml`,
    `name: ${name}\ndescription: The agent ${name}\ninstructions: Do it.\nmodels: { provider: scripted, script: script.yaml }\n${more}`,
  );
}

/** The agents that an agent may start. */
export const lead = (agents: string) => `agents: ${agents}\n`;
/** One that lies beside it. */
export const beside = (name: string, more = "") =>
  `[{ name: ${name}, manifest: ../${name}${more} }]`;

/** Every run, by pid. */
export async function processes(home: ModelHome): Promise<ProcessRow[]> {
  return (await home.system.processes({ all: true })).toSorted((a, b) => a.pid - b.pid);
}

/** Notes of the payments that were made. */
export function payments(home: ModelHome): string[] {
  try {
    return Deno.readTextFileSync(`${home.folder}/ledger`).trim().split("\n")
      .map((line) => line.split(" ")[1] ?? "");
  } catch {
    return [];
  }
}

/** A request to take a run up. */
export function resumeOf(
  home: ModelHome,
  run: string,
  more: Partial<ResumeRequest> = {},
): ResumeRequest {
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const off = { stored: false, acceptCut: false, fork: false, yes: false, trust: false };
  return { run, client, unknown: [], ...off, ...more };
}

/** Takes a run up and waits for its end. */
export async function resume(
  home: ModelHome,
  run: string,
  more: Partial<ResumeRequest> = {},
): Promise<RunReport> {
  const handle = await home.system.resume(resumeOf(home, run, more), { onEvent: () => {} });
  return await handle.done;
}

/** A run that has begun, and the way to wait for what it does. */
export async function begin(
  home: ModelHome,
  manifest: string,
  observer: Partial<RunObserver> = {},
): Promise<{ handle: RunHandle; until(type: RunEvent["type"], count?: number): Promise<void> }> {
  const events: RunEvent[] = [];
  const waiting: { type: string; count: number; resolve: () => void }[] = [];
  const client = { cwd: home.folder, env: home.env, interactive: false };
  const told = (type: string) => events.filter((event) => event.type === type).length;
  const onEvent = (event: RunEvent) => {
    events.push(event);
    for (const { type, count, resolve } of waiting) if (told(type) >= count) resolve();
  };
  const request = { manifest, intent: "Go", trust: false, client };
  const handle = await home.system.run(request, { ...observer, onEvent });
  const until = (type: RunEvent["type"], count = 1) =>
    told(type) >= count
      ? Promise.resolve()
      : new Promise<void>((resolve) => waiting.push({ type, count, resolve }));
  return { handle, until };
}

/** Waits until something holds; rejects after a minute. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!await holds()) {
    if (performance.now() > endMs) throw new Error("It never came to hold");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
