import assert from "node:assert/strict";

const launcher = new URL("../scripts/rnix", import.meta.url).pathname;

function has(program: string): boolean {
  return new Deno.Command("sh", { args: ["-c", `command -v ${program} >/dev/null`] })
    .outputSync().success;
}

/** What a shell's script prints, run in a folder with one file, `rnix` being a link on PATH. */
async function inShell(shell: string, args: string[], script: string): Promise<string> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-complete-" }));
  try {
    Deno.symlinkSync(launcher, `${folder}/rnix`);
    Deno.writeTextFileSync(`${folder}/my agent.yaml`, "");
    const { stdout, stderr } = await new Deno.Command(shell, {
      args: [...args, "-c", script],
      cwd: folder,
      env: {
        PATH: `${folder}:${Deno.env.get("PATH")}`,
        RNIX_HOME: `${folder}/home`,
        XDG_CONFIG_HOME: `${folder}/config`,
      },
      stdin: "null",
    }).output();
    assert.equal(new TextDecoder().decode(stderr), "");
    return new TextDecoder().decode(stdout);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

/** Puts a command line into the variables that bash gives a completion, and prints what comes back. */
function bashAt(...words: string[]): string {
  const quoted = words.map((word) => `"${word}"`).join(" ");
  return `COMP_WORDS=(rnix ${quoted}); COMP_CWORD=${words.length}; _rnix; printf '%s\\n' "\${COMPREPLY[@]}"; echo .\n`;
}

Deno.test({
  name: "bash completes commands, flags, values, agents and files",
  ignore: !has("bash"),
  fn: async () => {
    const printed = await inShell(
      "bash",
      ["--norc"],
      `eval "$(rnix completions bash)"\n` + bashAt("dae") + bashAt("daemon", "sto") +
        bashAt("attach", "--from", "=", "n") + bashAt("run", "dem") + bashAt("run", "my") +
        bashAt("ps", "--al"),
    );
    assert.deepEqual(printed.split("\n.\n"), [
      "daemon",
      "stop",
      "now",
      "demo",
      "my agent.yaml",
      "--all",
      "",
    ]);
  },
});

Deno.test({
  name: "fish completes them with a word about each",
  ignore: !has("fish"),
  fn: async () => {
    const printed = await inShell(
      "fish",
      ["--no-config"],
      "rnix completions fish | source; complete -C 'rnix daemon sto'; complete -C 'rnix run dem'",
    );
    assert.deepEqual(printed.split("\n"), [
      "stop\tSuspend what is at work and end the daemon",
      "demo\tembedded agent",
      "",
    ]);
  },
});

Deno.test({
  name: "zsh takes the script and describes what it is given",
  ignore: !has("zsh"),
  fn: async () => {
    // Without a line editor there is nothing to complete in, so what the script hands on is printed.
    const printed = await inShell(
      "zsh",
      ["-f"],
      `compdef() { print "compdef $*" }
_describe() { print -l -- "\${shown[@]}" }
_files() { print files }
eval "$(rnix completions zsh)"
words=(rnix daemon sto); CURRENT=3; _rnix
words=(rnix run dem); _rnix`,
    );
    assert.deepEqual(printed.split("\n"), [
      "compdef _rnix rnix",
      "stop:Suspend what is at work and end the daemon",
      "demo:embedded agent",
      "files",
      "",
    ]);
  },
});
