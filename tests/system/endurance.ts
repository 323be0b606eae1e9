/**
 * `endurance.ts`: what servers may take minutes to do to whole runs, in real time (about two and a half minutes, all at once): one that dies after every handshake, one that is down for a minute, one that is dead under twenty calls, one that is busy for a minute, ones that don't take ping.
 *
 * The tests have the same on a virtual clock or with shorter times. Says what it sees, a line per case; fails where a line is wrong.
 */
import { join } from "node:path";
import { scripted } from "../servers/launch_server.ts";
import { ScriptedHttpServer } from "../servers/scripted_http_server.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";
import { TerminalStage } from "./terminal_stage.ts";

const MINUTE_MS = 60_000;
const TOOLS: Scenario = { tools: [{ name: "t", inputSchema: { type: "object" } }] };
const CALL = "calls: [{ tool: t, input: {} }]";

const linesOf = (file: string): string[] => {
  try {
    return Deno.readTextFileSync(file).split("\n").filter((line) => line !== "");
  } catch {
    return [];
  }
};

const pausing = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A run of one agent with one server. */
class Case {
  readonly stage: TerminalStage;
  readonly agent: string;

  constructor(stage: TerminalStage) {
    this.stage = stage;
    this.agent = join(stage.folder, "agent");
  }

  get starts(): number {
    return linesOf(join(this.stage.folder, "starts")).length;
  }

  /** Writes the agent; `server` is an entry of `mcp.servers`. */
  write(turns: string[], server: string): void {
    this.stage.agent("agent", `turns:\n${turns.map((turn) => `  - ${turn}\n`).join("")}`, [
      `s: ${server}`,
    ]);
    const file = join(this.agent, "agent.yaml");
    const more = "on_unknown: skip\nbudget: { turns: 2000 }\n";
    Deno.writeTextFileSync(file, Deno.readTextFileSync(file) + more);
  }

  /** An entry for the scripted server on stdio, which counts its starts. */
  stdio(scenario: Scenario, more = ""): string {
    const file = join(this.stage.folder, "scenario.json");
    const starts = join(this.stage.folder, "starts");
    Deno.writeTextFileSync(file, JSON.stringify({ ...TOOLS, starts, ...scenario }));
    const { command, args } = scripted({}, {}, file);
    return `{ command: "${command}", args: ${JSON.stringify(args)}, startup_timeout: 1m${more} }`;
  }

  /** How the calls of the run went, in order. */
  outcomes(): string[] {
    const runs = join(this.stage.home, "state/runs");
    const [{ name = "" } = {}] = Deno.readDirSync(runs);
    const results: string[] = [];
    for (const line of linesOf(join(runs, name, "journal.jsonl"))) {
      const entry: { type: string; outcome?: string } = JSON.parse(line);
      if (entry.type === "call.result") results.push(entry.outcome ?? "");
    }
    return results;
  }
}

/** Plays a case and says what was seen; whether it is right. */
async function played(
  name: string,
  play: (each: Case) => Promise<{ seen: string; isRight: boolean }>,
): Promise<boolean> {
  await using stage = new TerminalStage();
  const { seen, isRight } = await play(new Case(stage));
  console.log(`${isRight ? "ok   " : "WRONG"} ${name}: ${seen}`);
  return isRight;
}

const dying = () =>
  played("a server that dies after each handshake, a call after each", async (each) => {
    each.write(
      [`{ repeat: 1000, ${CALL} }`],
      each.stdio({ on: { "tools/list": { exitAfter: 0 } } }),
    );
    const run = each.stage.open(["run", each.agent, "Go"]);
    await pausing(2 * MINUTE_MS);
    const { starts } = each;
    await each.stage.rnix("kill", "1");
    await run.ended;
    return { seen: `${starts} starts in two minutes`, isRight: starts > 2 && starts < 12 };
  });

const down = () =>
  played("a server at an address that is down for a minute", async (each) => {
    const server = await ScriptedHttpServer.start(TOOLS);
    each.write(
      [`{ ${CALL} }`, `{ delay: 20s, ${CALL} }`, `{ delay: 55s, ${CALL} }`, "text: done"],
      `{ url: "${server.url}" }`,
    );
    const run = each.stage.open(["run", each.agent, "Go"]);
    while (server.count("tools/call") === 0) await pausing(20);
    await pausing(2_000);
    await server.stop();
    await pausing(MINUTE_MS);
    await server.restart();
    const { code } = await run.ended;
    await server.stop();
    const seen = each.outcomes().join(", ");
    return { seen: `${seen}, exit ${code}`, isRight: seen === "ok, error, ok" && code === 0 };
  });

const dead = () =>
  played("twenty calls at once on a server that is dead", async (each) => {
    const calls = Array.from({ length: 20 }, () => "{ tool: t, input: {} }").join(", ");
    each.write(
      [`{ ${CALL} }`, `{ delay: 1s, calls: [${calls}] }`, "text: done"],
      each.stdio({
        lives: [{ on: { "tools/call": { exitAfter: 0 } } }, { start: { delayMs: 4_000 } }],
      }),
    );
    const { code } = await each.stage.open(["run", each.agent, "Go"]).ended;
    const answered = each.outcomes().filter((outcome) => outcome === "ok").length;
    const seen = `${each.starts} starts, ${answered} calls answered, exit ${code}`;
    return { seen, isRight: each.starts === 2 && answered === 21 && code === 0 };
  });

/** A run that must end well with the one server it began with, asked every ten seconds whether it lives. */
const living = (name: string, scenario: Scenario, turns: string[], more = "") =>
  played(name, async (each) => {
    const config = join(each.stage.home, "config");
    Deno.mkdirSync(config, { recursive: true });
    Deno.writeTextFileSync(join(config, "config.yaml"), "ping: { interval: 10s }\n");
    each.write([...turns, "text: done"], each.stdio(scenario, more));
    const { code } = await each.stage.open(["run", each.agent, "Go"]).ended;
    const last = each.outcomes().at(-1);
    const seen = `${each.starts} start, the last call ${last}, exit ${code}`;
    return { seen, isRight: each.starts === 1 && last === "ok" && code === 0 };
  });

async function main(): Promise<boolean> {
  const busy = { "tools/call": { blockMs: MINUTE_MS, then: {} } };
  const idle = [`{ ${CALL} }`, `{ delay: 90s, ${CALL} }`];
  const missing = { code: -32601, message: "Method not found" };
  const cases = await Promise.all([
    dying(),
    down(),
    dead(),
    living("one that is busy for a minute in a call", { on: busy }, idle, ", timeout: 2m"),
    living("one that is busy for a minute in a call that gave up", { on: busy }, [
      `{ ${CALL} }`,
      `{ delay: 1m, ${CALL} }`,
    ], ", timeout: 20s"),
    living("one that drops ping", { on: { ping: { silent: true } } }, idle),
    living("one that refuses ping", { on: { ping: { error: missing } } }, idle),
  ]);
  return cases.every((isRight) => isRight);
}

if (import.meta.main && !await main()) Deno.exit(1);
