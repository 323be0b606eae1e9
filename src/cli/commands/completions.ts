/** `rnix completions` prints a shell's script, and `rnix complete` is what the script asks. */
import { basename } from "../../base/posix_path.ts";
import { shortRunId } from "../../base/ids.ts";
import { resolvePaths } from "../../base/paths.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, WordKind } from "../command.ts";
import { type Candidate, complete } from "../complete.ts";
import { COMPLETION_SCRIPTS } from "../completion_scripts.ts";
import { oneLine } from "../plain_text.ts";

const SHELLS = Object.keys(COMPLETION_SCRIPTS);

export const completions: Command = {
  name: "completions",
  summary: "Print completions for bash, zsh or fish",
  positionals: [{ name: "shell", kind: "shell", optional: true }],
  flags: [],
  details:
    `The shell is that of SHELL where none is named. Commands, flags, agents, servers, runs and mounts are completed.
  bash: eval "$(rnix completions bash)"    in ~/.bashrc
  zsh:  eval "$(rnix completions zsh)"     in ~/.zshrc, after compinit
  fish: rnix completions fish | source     in ~/.config/fish/config.fish`,
  run(invocation, { env }) {
    const shell = invocation.words[0] ?? basename(env["SHELL"] ?? "");
    const script = COMPLETION_SCRIPTS[shell];
    if (script === undefined) {
      const message = shell === ""
        ? "No shell is named, and SHELL is not set"
        : `There are no completions for "${shell}"`;
      throw usageError(message, `one of: ${SHELLS.join(", ")}`);
    }
    return Promise.resolve({ exitCode: 0, data: { shell, script }, text: script });
  },
};

/** `commands` gives the whole table. */
export function completeCommand(commands: () => Promise<readonly Command[]>): Command {
  return {
    name: "complete",
    summary: "Say what could stand at the cursor; for shells",
    positionals: [{ name: "word", optional: true, rest: true }],
    flags: [],
    hidden: true,
    async run(invocation, context) {
      const made = await complete(
        invocation.words,
        await commands(),
        (kind) => namesOf(kind, context),
      );
      const lines = made.candidates.map(({ word, about }) => `${word}\t${oneLine(about)}`);
      if (made.files) lines.push(":files");
      return { exitCode: 0, data: made, text: lines.join("\n") };
    },
  };
}

async function namesOf(kind: WordKind, context: Context): Promise<Candidate[]> {
  switch (kind) {
    case "agent":
      return await agents(context);
    case "run":
    case "live-run":
      return await runs(context, kind === "live-run");
    case "mount":
      return (await (await context.system()).mounts()).map(({ mount, agent }) => ({
        word: mount,
        about: agent,
      }));
    case "server":
      return await servers(context);
    case "shell":
      return SHELLS.map((shell) => ({ word: shell, about: "shell" }));
    case "command":
    case "file":
      return [];
  }
}

/** Servers of `mcp.yaml`. */
async function servers({ world, env }: Context): Promise<Candidate[]> {
  const [{ loadServers }, { disk }] = await Promise.all([
    import("../../manifest/load_servers.ts"),
    import("../../base/disk.ts"),
  ]);
  const { config } = resolvePaths(env, world.uid);
  const { uid, cwd } = world;
  const table = await loadServers({ storage: disk, cwd, home: env["HOME"], uid, config });
  return table.all.map(({ name, scope }) => ({ word: name, about: `server of the ${scope}` }));
}

async function agents({ world, env }: Context): Promise<Candidate[]> {
  const [{ listAgents }, { EMBEDDED_AGENTS }, { disk }] = await Promise.all([
    import("../../manifest/known_agents.ts"),
    import("../../manifest/embedded.ts"),
    import("../../base/disk.ts"),
  ]);
  const { config } = resolvePaths(env, world.uid);
  const known = await listAgents({
    storage: disk,
    cwd: world.cwd,
    home: env["HOME"],
    uid: world.uid,
    config,
    embedded: EMBEDDED_AGENTS,
  });
  return known.map(({ name, scope }) => ({ word: name, about: `${scope} agent` }));
}

/** By pid and by short id. */
async function runs(context: Context, liveOnly: boolean): Promise<Candidate[]> {
  const system = await context.system();
  const rows = await system.processes({ all: !liveOnly });
  return rows.filter(({ state }) => !liveOnly || state === "running" || state === "created")
    .toReversed()
    .flatMap(({ pid, run_id, agent, state, intent }) => {
      const about = `${agent} (${state}) ${intent}`;
      return [{ word: String(pid), about }, { word: shortRunId(run_id), about }];
    });
}
