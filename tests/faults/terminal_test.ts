/** What users see on their terminals: stdout that a program can read whatever servers do, and nothing left when the terminal goes. */
import assert from "node:assert/strict";
import { processesNaming } from "../servers/marked_processes.ts";
import { scripted } from "../servers/launch_server.ts";
import { ScriptedHttpServer } from "../servers/scripted_http_server.ts";
import type { Scenario } from "../servers/scripted_scenario.ts";
import { LAUNCHER, TerminalStage } from "../system/terminal_stage.ts";
import { ONE_TOOL } from "./fault_scene.ts";

const CALLS = `turns:
  - calls: [{ tool: t, input: {} }]
  - text: Done.
`;

/** The scripted server as a line of a manifest. */
function served(name: string, scenario: Scenario): string {
  const { command, args } = scripted({ tools: ONE_TOOL, ...scenario });
  // A dollar of a manifest would begin a variable.
  return `${name}: ${JSON.stringify({ command, args }).replaceAll("$", "$$$$")}`;
}

const NOISY: Scenario = {
  start: { noise: "Welcome! {not json}", stderr: "starting" },
  on: { "tools/call": { noise: '{"level":"info"}', stderr: "\u001b[31mcalled\u001b[0m" } },
};

Deno.test("[D21] with --json stdout is one document, however noisy the server is and however the run ends", async () => {
  await using stage = new TerminalStage();
  stage.agent("noisy", CALLS, [served("s", NOISY)]);
  stage.agent("failing", CALLS, [served("s", { start: { noise: "oops", exit: 3 } })]);
  for (const [agent, code] of [["noisy", 0], ["failing", 3]] as const) {
    const ended = await stage.rnix("run", agent, "go", "--json");
    const envelope = JSON.parse(ended.stdout);
    assert.equal(ended.code, code, ended.stderr);
    assert.equal(envelope.ok, code === 0);
  }
});

Deno.test("[D21] [D23] with --stream each line of stdout is an event, a mount that fails is one of them", async () => {
  await using stage = new TerminalStage();
  stage.agent("noisy", CALLS, [served("s", NOISY)]);
  stage.agent("failing", CALLS, [served("s", { start: { noise: "oops", exit: 3 } })]);
  for (
    const [agent, wanted] of [["noisy", "call.finished"], ["failing", "mount.failed"]] as const
  ) {
    const { stdout } = await stage.rnix("run", agent, "go", "--stream");
    const types = stdout.trimEnd().split("\n").map((line) => JSON.parse(line).type);
    assert.ok(types.includes(wanted), types.join(" "));
  }
});

Deno.test({
  name: "[D33] closing the terminal suspends the run, and nothing of it or its server goes on",
  ignore: !await isThere("/usr/bin/script"),
  async fn() {
    await using stage = new TerminalStage();
    const word = `hup-${crypto.randomUUID()}`;
    const slow = served("s", {
      capabilities: { tools: {}, experimental: { [word]: {} } },
      on: { "tools/call": { silent: true } },
    });
    stage.agent("waiting", CALLS, [slow]);
    const terminal = stage.open(["-qefc", `${LAUNCHER} run waiting go`, "/dev/null"], {
      program: "/usr/bin/script",
    });
    const running = await stage.until(async () => (await processesNaming(word))[0]);
    assert.ok(running > 0);
    await stage.until(async () => {
      const { processes } = await stage.data<{ processes: { state: string; mounts: string[] }[] }>(
        "ps",
      );
      return processes[0]?.mounts.length === 1 ? true : undefined;
    });
    terminal.child.kill("SIGKILL");
    await terminal.ended;
    await stage.until(async () => (await processesNaming(word)).length === 0 ? true : undefined);
    const row = await stage.until(async () => {
      const { processes } = await stage.data<{ processes: { state: string; reason?: string }[] }>(
        "ps",
        "-a",
      );
      return processes[0]?.state === "running" ? undefined : processes[0];
    });
    assert.deepEqual([row.state, row.reason], ["suspended", "detached"]);
  },
});

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Every file below a folder that holds `word`, sockets and such aside. */
async function filesWith(word: string, folder: string): Promise<string[]> {
  const { stdout } = await new Deno.Command("grep", {
    args: ["-rlaF", "-D", "skip", word, folder],
  }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "");
}

Deno.test("[D15] a server at an address has its variables in url and headers, and no output has their values", async () => {
  await using stage = new TerminalStage();
  const canary = "s3cr3t-canary-123456";
  const server = await ScriptedHttpServer.start({
    tools: ONE_TOOL,
    on: {
      "tools/call": { text: `you sent ${canary}`, then: { http: { status: 500, body: canary } } },
    },
  });
  const at = `{ url: "${server.url}?key=\${KEY}", headers: { Authorization: "Bearer \${KEY}" } }`;
  stage.agent("remote", CALLS.replace("calls: [", "calls: [{ tool: t, input: {} }, "), [
    `s: ${at}`,
  ]);
  const ended = await stage.open(["run", "remote", "go", "--stream", "-v"], {
    env: { KEY: canary },
  }).ended;
  const [call] = server.of("tools/call");
  assert.equal(call?.headers["authorization"], `Bearer ${canary}`, ended.stderr);
  assert.match(call?.target ?? "", /\?key=s3cr3t-canary-123456$/);
  const shown = [
    ended,
    await stage.rnix("strace", "1"),
    await stage.rnix("logs", "1"),
    await stage.rnix("ps", "-a", "--json"),
  ];
  for (const { stdout, stderr } of shown) assert.ok(!`${stdout}${stderr}`.includes(canary));
  assert.deepEqual(await filesWith(canary, stage.home), []);
  await server.stop();
});
