/** The VFS from outside, with a real server and real processes: seed 000's table row by row, the process side, and who may not. */
import assert from "node:assert/strict";
import { resourceTools } from "../../src/devices/mcp/resource_tools.ts";
import { everythingMount, LAUNCHER, type ProcessHome, withProcessHome } from "./process_home.ts";

/** An agent that calls these tools, then stays at work for as long as a test may take. */
function agent(
  home: ProcessHome,
  name: string,
  { calls = [], more = "" }: { calls?: { tool: string; input: object }[]; more?: string },
): void {
  const turns = [
    ...calls.map((call) => ({ calls: [{ ...call, offered: false }] })),
    { text: "It is over.", delay: "300s" },
  ];
  home.write(`${name}/script.yaml`, JSON.stringify({ turns }));
  home.write(
    `${name}/agent.yaml`,
    `name: ${name}\ninstructions: You test.\nmodels: { provider: scripted, script: script.yaml }\n${more}`,
  );
}

/** What a command printed; it has to have worked. */
async function printed(home: ProcessHome, ...args: string[]): Promise<string> {
  const { code, out, err } = await home.rnix(...args);
  assert.equal(code, 0, `rnix ${args.join(" ")}: ${err}`);
  return out;
}

async function refusal(home: ProcessHome, ...args: string[]): Promise<string> {
  const { code, out, err } = await home.rnix(...args);
  assert.equal(code, 2, `rnix ${args.join(" ")}: ${out}${err}`);
  return err;
}

/** Waits until so many calls of the run have their result. */
async function untilCalled(home: ProcessHome, pid: string, count: number): Promise<void> {
  for (;;) {
    const status = await printed(home, "cat", `/proc/${pid}/status`);
    const log = await printed(home, "logs", pid, "--stream");
    if (log.split("\n").filter((line) => /"call\.finished"/.test(line)).length >= count) return;
    assert.match(status, /State:\tR/, "it ended before");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Each row of the table, and what holds for all of them; in this order. */
const ROWS: {
  readonly [row: string]: (home: ProcessHome, root: string, pid: string) => Promise<void>;
} = {
  "/mnt/mcp/{mount}/ reads as its folders": async (home, root) => {
    assert.deepEqual(JSON.parse(await printed(home, "cat", `${root}/`)), ["tools", "resources"]);
    assert.equal(await printed(home, "ls", root), "tools\nresources\n");
    assert.match(await refusal(home, "write", root, "{}"), /^\[INVALID\] Write: .*only be read/);
  },
  "/mnt/mcp/{mount}/tools reads as the list of tools": async (home, root) => {
    const tools: { name: string; inputSchema: object }[] = JSON.parse(
      await printed(home, "cat", `${root}/tools`),
    );
    const echo = tools.find(({ name }) => name === "echo");
    assert.ok(echo !== undefined && "properties" in echo.inputSchema);
    const names = (await printed(home, "ls", `${root}/tools`)).trim().split("\n");
    assert.deepEqual(names, tools.map(({ name }) => name));
    assert.match(await refusal(home, "write", `${root}/tools`, "{}"), /^\[INVALID\]/);
  },
  "/mnt/mcp/{mount}/tools/{name} is called by a write, and read before it INVALID": async (
    home,
    root,
    pid,
  ) => {
    const path = `${root}/tools/echo`;
    assert.match(await refusal(home, "cat", path), /^\[INVALID\] .*\n?hint: rnix write prints/);
    assert.equal(await printed(home, "write", path, '{"message":"hi"}'), "Echo: hi\n");
    const { data } = JSON.parse(await printed(home, "write", path, '{"message":"yo"}', "--json"));
    assert.deepEqual([data.outcome, data.content], ["ok", [{ type: "text", text: "Echo: yo" }]]);
    assert.match(await printed(home, "stat", path), /Kind:\ttool\nMode:\trw\nEffect:\twrite/);
    assert.match(await refusal(home, "write", path, "{}"), /^\[INVALID\].*required property/);
    const own = ["/mnt/mcp/every/tools/echo", '{"message":"o"}', "--pid", pid];
    assert.equal(await printed(home, "write", ...own), "Echo: o\n");
  },
  "/mnt/mcp/{mount}/resources reads as the list of resources": async (home, root) => {
    const resources: { uri: string }[] = JSON.parse(
      await printed(home, "cat", `${root}/resources`),
    );
    const names = (await printed(home, "ls", `${root}/resources`)).trim().split("\n");
    assert.deepEqual(names, resources.map(({ uri }) => encodeURIComponent(uri)));
    assert.match(await refusal(home, "write", `${root}/resources`, "{}"), /^\[INVALID\]/);
  },
  "/mnt/mcp/{mount}/resources/{uri} reads as its content, percent-encoded or plain": async (
    home,
    root,
  ) => {
    const [first = ""] = (await printed(home, "ls", `${root}/resources`)).split("\n");
    const encoded = await printed(home, "cat", `${root}/resources/${first}`);
    const plain = await printed(home, "cat", `${root}/resources/${decodeURIComponent(first)}`);
    assert.match(encoded, /^# Everything Server/);
    assert.equal(plain, encoded);
    assert.match(await refusal(home, "write", `${root}/resources/${first}`, "{}"), /^\[INVALID\]/);
    const missing = await home.rnix("cat", `${root}/resources/demo:none`);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^\[DRIVER\] .*Resource demo:none not found/);
  },
  "an unknown path is NOT_FOUND, with the valid ones": async (home, root) => {
    for (const path of [`${root}/nothing`, `${root}/tools/nothing`]) {
      assert.match(await refusal(home, "cat", path), /^\[NOT_FOUND\] .*\nhint: .*tools\/echo/);
    }
  },
  "what a person did is in the journal as a person's, and not in the conversation": async (
    home,
    _root,
    pid,
  ) => {
    const context = await printed(home, "cat", `/proc/${pid}/context`);
    assert.deepEqual(JSON.parse(context), [{ role: "user", text: "go" }]);
    const told = /A person wrote to \/mnt\/mcp\/every\/tools\/echo \(o\d+\): ok/;
    assert.match(await printed(home, "logs", pid), told);
    const trace = await printed(home, "cat", `/proc/${pid}/trace`);
    assert.match(trace, /"syscall":"Write",.*"origin":"operator"/);
  },
  "the mounts of a suspended run are NOT_FOUND until it is resumed, then under its new pid": async (
    home,
    root,
    pid,
  ) => {
    await printed(home, "pause", pid);
    await home.rnix("wait", pid);
    assert.match(await refusal(home, "ls", root), /^\[NOT_FOUND\] .*\nhint: .*rnix resume /);
    const resumed = (await printed(home, "resume", "-d", pid)).trim();
    assert.notEqual(resumed, pid);
    for (const path of [root, `/mnt/mcp/${resumed}-every`]) {
      assert.equal(await printed(home, "ls", path), "tools\nresources\n");
    }
  },
};

Deno.test("[R2] seed 000's table of paths, row by row, against server-everything", async (t) => {
  await withProcessHome(async (home) => {
    agent(home, "looker", { more: everythingMount("every") });
    const pid = await home.start("./looker");
    const root = `/mnt/mcp/${pid}-every`;
    for (const [name, row] of Object.entries(ROWS)) {
      await t.step(name, () => row(home, root, pid));
    }
  });
});

Deno.test("[R23] /proc tells of a run at work and of one that has ended, /dev of its tools and model", async () => {
  await withProcessHome(async (home) => {
    agent(home, "worker", {
      calls: [{ tool: "Bash", input: { command: "echo done by bash" } }],
      more: "tools: [Read, Bash]\n",
    });
    const pid = await home.start("./worker");
    await untilCalled(home, pid, 1);
    const proc = `/proc/${pid}`;
    assert.equal(await printed(home, "ls", "/proc"), `${pid}\n`);
    assert.equal(
      await printed(home, "ls", proc),
      ["context", "fd", "intent", "mounts", "results", "status", "trace", ""].join("\n"),
    );
    const status = await printed(home, "cat", `${proc}/status`);
    assert.match(status, /^Name:\tworker\nState:\tR \(running\)\nPid:\t\d+\nPPid:\t0\n/);
    assert.match(status, /\nTurns:\t1\nToolCalls:\t1\n/);
    assert.equal(await printed(home, "cat", "/proc/self/intent", "--pid", pid), "go\n");
    const live = await printed(home, "cat", `${proc}/mounts`);
    assert.match(live, /^shell \/dev\/shell dev rw 0 0$/m);
    assert.match(live, /^scripted \/dev\/llm\/scripted dev ro 0 0$/m);
    assert.match(await printed(home, "cat", `${proc}/context`), /done by bash/);
    assert.match(await printed(home, "cat", `${proc}/trace`), /"path":"\/dev\/shell\/tools\/Bash"/);

    assert.equal(await printed(home, "ls", "/dev", "--pid", pid), "fs\nllm\nshell\n");
    assert.match(await refusal(home, "ls", "/dev"), /--pid/);
    assert.equal(await printed(home, "ls", "/dev/fs/tools", "--pid", pid), "Read\n");
    const bash = ["write", "/dev/shell/tools/Bash", '{"command":"echo by a person"}', "--pid", pid];
    assert.equal(await printed(home, ...bash), "by a person\n");
    assert.match(
      await printed(home, "stat", "/dev/llm/scripted", "--pid", pid),
      /Kind:\tmodel\nMode:\tr/,
    );
    assert.match(
      await refusal(home, "write", "/dev/llm/scripted", "{}", "--pid", pid),
      /^\[INVALID\] .*\nhint: .*rnix run/,
    );

    await printed(home, "kill", pid);
    await home.rnix("wait", pid);
    await printed(home, "daemon", "stop");
    assert.match(
      await printed(home, "cat", `${proc}/status`),
      /State:\tX \(dead\)[^]*Signal:\tTERM/,
    );
    assert.match(await printed(home, "cat", `${proc}/context`), /done by bash/);
    assert.equal(await printed(home, "ls", `${proc}/fd`), "");
    assert.match(
      await refusal(home, "ls", "/dev", "--pid", pid),
      /^\[NOT_FOUND\] .*\nhint: it has ended/,
    );
    assert.match(await refusal(home, "cat", `${proc}/nothing`), /hint: there is: context, fd/);
  });
});

Deno.test("[R18] an agent reaches no other's mounts: not by a path in words, nor by rnix, plainly or without the mark", async () => {
  await withProcessHome(async (home) => {
    agent(home, "owner", { more: everythingMount("every") });
    const owner = await home.start("./owner");
    const path = `/mnt/mcp/${owner}-every/tools/echo`;
    const rnix = `RNIX_HOME=${home.env["RNIX_HOME"]} ${LAUNCHER}`;
    const unmarked = `RNIX_HOME=${home.env["RNIX_HOME"]} env -u RNIX_INSTANCE ${LAUNCHER}`;
    const tried = [rnix, unmarked].flatMap((program) => [
      `${program} ls /mnt/mcp/${owner}-every`,
      `${program} cat /mnt/mcp/${owner}-every/tools`,
      `${program} cat /proc/${owner}/context`,
      `${program} stat ${path} --pid ${owner}`,
      `${program} write ${path} '{"message":"taken"}'`,
      `${program} resume ${owner} --unknown=skip`,
    ]);
    agent(home, "thief", {
      calls: [
        { tool: path, input: { message: "taken" } },
        { tool: "Read", input: { path: `/mnt/mcp/${owner}-every/tools` } },
        ...tried.map((command) => ({ tool: "Bash", input: { command } })),
      ],
      more: "tools: [Read, Bash]\n",
    });
    const thief = await home.start("./thief");
    await untilCalled(home, thief, tried.length + 2);
    const context: { role: string; results?: { content: { text: string }[] }[] }[] = JSON.parse(
      await printed(home, "cat", `/proc/${thief}/context`),
    );
    const results = context.flatMap(({ results = [] }) =>
      results.map(({ content }) => content[0]?.text ?? "")
    );
    const [named = "", read = "", ...commands] = results;
    assert.match(named, /^\[NOT_FOUND\] There is no tool named/);
    assert.match(read, /NOT_FOUND|PERMISSION/);
    assert.equal(commands.length, tried.length);
    commands.forEach((text, index) => {
      assert.match(text, /\[PERMISSION\].*An agent can't/s, tried[index]);
      assert.match(text, /exit code 2/, tried[index]);
    });
    const trace = await printed(home, "cat", `/proc/${owner}/trace`);
    assert.doesNotMatch(trace, /operator|taken/, "nothing reached its gate");

    // A person in the thief's view is refused in its gate.
    const seen = await refusal(home, "cat", `/mnt/mcp/${owner}-every/tools`, "--pid", thief);
    assert.match(seen, /^\[PERMISSION\] PID \d+ Open: .*It belongs to another process/);
    assert.match(await refusal(home, "cat", `/proc/${owner}/status`, "--pid", thief), /PERMISSION/);
    assert.match(await printed(home, "cat", `/proc/${thief}/trace`), /\[PERMISSION\] It belongs/);
  });
});

Deno.test("[F13] a model lists and reads the resources of its server, unless its manifest names other tools", async () => {
  await withProcessHome(async (home) => {
    const [list, read] = resourceTools("every").map(({ modelName }) => modelName);
    const uri = "demo://resource/static/document/features.md";
    const calls = [{ tool: list ?? "", input: {} }, { tool: read ?? "", input: { uri } }];
    agent(home, "reader", { calls, more: everythingMount("every") });
    const narrow = `${everythingMount("every")}      tools: { allow: ["echo"] }\n`;
    agent(home, "narrow", { calls, more: narrow });
    const results = async (name: string) => {
      const pid = await home.start(`./${name}`);
      await untilCalled(home, pid, calls.length);
      const context: { results?: { isError: boolean; content: unknown }[] }[] = JSON.parse(
        await printed(home, "cat", `/proc/${pid}/context`),
      );
      return context.flatMap(({ results = [] }) => results);
    };
    const [listed, got] = await results("reader");
    assert.equal(listed?.isError, false);
    assert.match(JSON.stringify(listed?.content), /features\.md.*resourceTemplates/);
    assert.match(JSON.stringify(got?.content), /"type":"resource".*# Everything Server/);
    for (const { isError, content } of await results("narrow")) {
      assert.ok(isError);
      assert.match(JSON.stringify(content), /NOT_FOUND/);
    }
    const requests = Deno.readTextFileSync(
      `${home.folder}/home/state/runs/${await runIdOf(home, "1")}/journal.jsonl`,
    );
    assert.match(
      requests,
      /"resources\/read":\{"name":"mcp__every__resources_read_[^}]*"effect":"read"/,
    );
  });
});

async function runIdOf(home: ProcessHome, pid: string): Promise<string> {
  const status = await printed(home, "cat", `/proc/${pid}/status`);
  return /RunId:\t(\S+)/.exec(status)?.[1] ?? "";
}

Deno.test("[F13] a prompt of a server is the intent of a run: the user's words, and in its journal", async () => {
  await withProcessHome(async (home) => {
    agent(home, "asker", { more: everythingMount("every") });
    const args = ["--prompt", "every/args-prompt", "--prompt-arg", "city=Bern"];
    const pid = (await printed(home, "run", "-d", ...args, "./asker")).trim();
    const intent = await printed(home, "cat", `/proc/${pid}/intent`);
    assert.match(intent, /weather in Bern/);
    const [first] = JSON.parse(await printed(home, "cat", `/proc/${pid}/context`));
    assert.deepEqual(first, { role: "user", text: intent.trimEnd() });
    const wrong = await refusal(home, "run", "--prompt", "every/nothing", "./asker");
    assert.match(wrong, /^\[NOT_FOUND\] .*\nhint: there is: simple-prompt, args-prompt/);
  });
});

Deno.test("Ctrl-C of a person's write cancels it, and what became of it is in the journal", async () => {
  await withProcessHome(async (home) => {
    agent(home, "worker", { more: "tools: [Bash]\n" });
    const pid = await home.start("./worker");
    const command = "touch begun; sleep 60; touch done";
    const child = new Deno.Command(LAUNCHER, {
      args: ["write", "/dev/shell/tools/Bash", JSON.stringify({ command }), "--pid", pid],
      cwd: home.folder,
      env: home.env,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    await untilThere(`${home.folder}/begun`);
    assert.equal(await printed(home, "cat", `/proc/${pid}/fd/3`), "/dev/shell/tools/Bash\n");
    child.kill("SIGINT");
    const { code, stderr } = await child.output();
    assert.equal(code, 130);
    assert.match(new TextDecoder().decode(stderr), /INTERRUPTED/);
    for (let told = ""; !/\(o1\)/.test(told);) told = await printed(home, "logs", pid);
    assert.throws(() => Deno.statSync(`${home.folder}/done`), Deno.errors.NotFound);
    assert.match(await printed(home, "cat", `/proc/${pid}/status`), /State:\tR/, "the run goes on");
  });
});

async function untilThere(path: string): Promise<void> {
  for (;;) {
    if (await Deno.stat(path).then(() => true, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
