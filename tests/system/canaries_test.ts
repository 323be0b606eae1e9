/** Canaries over every place where a run may be looked at: the real program, with secrets wherever a manifest can put them, and servers that tell everything they were given. */
import assert from "node:assert/strict";
import { assertNoCanary } from "../servers/canaries.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import { startTellingHttpServer } from "../servers/telling_http_server.ts";
import { TerminalStage } from "./terminal_stage.ts";

const TELLTALE = new URL("../servers/telltale_server.ts", import.meta.url).pathname;

/** What variables hold; no two have anything in common, so that a piece of one is of no other. */
const VALUES = {
  TOKEN: 'tk7Qf/w+Xz=p"9"-Lm3R8vB2nK5cJd',
  ARG: "ar4Hs/Yb+Vt=6gQe1WuZ0xPk8Dn2fM",
  GRANTED: "gr9Cj/Tm+Lq=3aRo7EyI5zXv1Bw6hS",
  HEAD: "hd2Np-Ug8Kd-0sFx4MiA6bVc9Jt3yQ",
  PART: "pt5We-Oh1Rz-7lCk3GnY8uTq2Xj4aB",
  QUERY: "qu8Ib-Dv6Sm-4wPf0LtH9eKy5Zr1cN",
  KEY: "ky3Gx-Ja7Qn-2hVd9BuM6oEs0Wl8tR",
  OTLP: "ot6Zc-Fy4Tk-8mXi1NpL3gHw7Ub5jD",
  PROXY: "px1Ro-Mb9We-5vCq7KsT2fAh6Yn0zG",
};

/** What is written out in the manifest. */
const LITERALS = {
  LIT: "lv0Kt/Ei+Pj=9xSc5QwN4rUg2Vm7aH",
  LITHEAD: "lh7By-Xl3Vo-6dRq8TfE1iJz4Wc9sK",
  LITQUERY: "lq4Un-Gs5Hm-1bZp2YvO7kCt3Da8eX",
};

const CANARIES = { ...VALUES, ...LITERALS };

function env(): { [name: string]: string } {
  const { OTLP, PROXY, ...values } = VALUES;
  return {
    ...values,
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9",
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${OTLP}`,
    HTTPS_PROXY: `http://someone:${PROXY}@127.0.0.1:9`,
    NO_PROXY: "127.0.0.1",
  };
}

interface Scene {
  stage: TerminalStage;
  /** Runs with the canaries in its environment; what it says has none of them. */
  told(...args: string[]): Promise<{ code: number; text: string }>;
  /** The same without them: what is redacted has to be known without the values. */
  later(...args: string[]): Promise<{ code: number; text: string }>;
}

async function inScene(
  models: string,
  servers: string,
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  await using stage = new TerminalStage();
  Deno.mkdirSync(`${stage.folder}/agent`);
  const manifest = `name: agent
instructions: Work.
models: ${models}
tools: [Bash]
mcp:
  servers:
${servers}`;
  Deno.writeTextFileSync(`${stage.folder}/agent/agent.yaml`, manifest);
  const heard = async (args: string[], more: { [name: string]: string }) => {
    const { code, stdout, stderr } = await stage.open(args, { env: more }).ended;
    const text = `${stdout}\n${stderr}`;
    assertNoCanary(CANARIES, `rnix ${args.join(" ")}`, text);
    return { code, text };
  };
  await work({
    stage,
    told: (...args) => heard(args, env()),
    later: (...args) => heard(args, {}),
  });
}

function telltale(...flags: string[]): string {
  const args = [
    "run",
    "--quiet",
    "--no-prompt",
    "--allow-all",
    TELLTALE,
    "TOKEN",
    "LIT",
    "GRANTED",
  ];
  const all = [...args, "ARG=${ARG}", ...flags];
  return `    world:
      command: "${Deno.execPath()}"
      args: ${JSON.stringify(all)}
      env: { TOKEN: "\${TOKEN}", LIT: "${LITERALS.LIT}" }
      inherit_env: [GRANTED]
      startup_timeout: 1m
`;
}

function remote(url: string): string {
  return `    far:
      url: "${url}/\${PART}?key=\${QUERY}&other=${LITERALS.LITQUERY}"
      headers: { Authorization: "Bearer \${HEAD}", X-Key: "${LITERALS.LITHEAD}" }
      startup_timeout: 1m
`;
}

const modelAt = (url: string) =>
  `{ provider: openai-compatible, preferred: m, base_url: "${url}", api_key_env: KEY }`;

/** Texts of all files below a folder, by path. */
function filesBelow(folder: string): [path: string, text: string][] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory, isFile }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return filesBelow(path);
    return isFile ? [[path, new TextDecoder().decode(Deno.readFileSync(path))]] : [];
  });
}

/** The daemon's own environment stays to be read for as long as it lives. */
function assertDaemonIsClean(stage: TerminalStage): void {
  const { os_pid } = JSON.parse(Deno.readTextFileSync(`${stage.home}/state/daemon.json`));
  const args = ["environ", "cmdline"].map((file) => `/proc/${os_pid}/${file}`);
  const { stdout } = new Deno.Command("cat", { args }).outputSync();
  const text = new TextDecoder().decode(stdout);
  assert.ok(text.includes("RNIX_HOME="), text);
  assertNoCanary(CANARIES, "the daemon's environment and arguments", text);
}

/** No file has a variable's value; the journal and what it names may have what the manifest has in plain. */
function assertFilesAreClean(stage: TerminalStage): void {
  const files = filesBelow(stage.home);
  assert.ok(files.some(([path]) => path.endsWith("/journal.jsonl")));
  for (const [path, text] of files) {
    const mayHoldLiterals = /journal\.jsonl|checkpoint\.json|\/blobs\//.test(path);
    assertNoCanary(mayHoldLiterals ? VALUES : CANARIES, path, text);
  }
}

/** Looks at a run in every way there is, with nothing in the environment. */
async function lookAt(scene: Scene, pid: string): Promise<void> {
  const { later, stage } = scene;
  const ways = [
    ["logs", pid],
    ["logs", pid, "--json"],
    ["logs", pid, "--stream"],
    ["strace", pid],
    ["strace", pid, "--json"],
    ["ps", "-a"],
    ["ps", "-a", "--json"],
    ["wait", pid],
    ["wait", pid, "--json"],
    ["top"],
    ["top", "--json"],
    ["journal", "export", pid],
    ["journal", "export", pid, "--format", "markdown"],
    ["journal", "verify", pid],
    ["replay", pid],
    ["replay", pid, "--json"],
    ["resume", pid, "--plan"],
    ["mcp", "list"],
    ["mcp", "list", "--json"],
    ["mcp", "logs", `${pid}-world`],
    ["mcp", "logs", `${pid}-world`, "--json"],
  ];
  for (const way of ways) await later(...way);
  assertFilesAreClean(stage);
}

Deno.test("[C09] [C11] a run whose servers tell all they were given leaves no secret in any place", async () => {
  await using far = startTellingHttpServer();
  const endpoint = startModelEndpoint((body, number) => {
    if (number > 1) return { text: `I was told ${JSON.stringify(body["messages"])}` };
    const bash = { command: "echo $HTTPS_PROXY $TOKEN $KEY; env | base64 -w 0; env >&2" };
    return {
      calls: [
        ...["tell", "fail", "refuse", "where", "deny"].map((name) => ({ name, arguments: "{}" })),
        { name: "Bash", arguments: JSON.stringify(bash) },
      ],
    };
  });
  await inScene(modelAt(endpoint.url), telltale() + remote(far.url), async (scene) => {
    const { told, stage } = scene;
    const run = await told("-v", "run", "./agent", "Do it");
    assert.equal(run.code, 0, run.text);
    assert.match(run.text, /I was told .*told: \[redacted\]/);
    await lookAt(scene, "1");
    const streamed = await told("run", "--stream", "./agent", "Do it");
    assert.equal(streamed.code, 0, streamed.text);
    await told("--json", "run", "./agent", "Do it");
    await told("check", "./agent");
    await told("check", "mcp", "./agent", "--connect");
    await told("check", "mcp", "./agent", "--connect", "--json");
    for (const name of ["world", "far"]) {
      await told("mcp", "test", "--agent", "./agent", name);
      await told("mcp", "test", "--agent", "./agent", name, "--json");
    }
    assertFilesAreClean(stage);
    const asked = endpoint.requests.map(({ bytes }) => new TextDecoder().decode(bytes));
    assertNoCanary(VALUES, "what the model was asked", asked.join("\n"));
  });
  await endpoint.close();
});

Deno.test("[C09] a process at work that is looked into, used by a person, joined and killed tells no secret", async () => {
  await using far = startTellingHttpServer();
  const over = Promise.withResolvers<void>();
  const endpoint = startModelEndpoint(async (_, number) => {
    if (number > 1) await over.promise;
    const names = number > 1 ? [] : ["tell", "fail", "where"];
    return { text: ["It ", "goes on"], calls: names.map((name) => ({ name, arguments: "{}" })) };
  });
  await inScene(modelAt(endpoint.url), telltale() + remote(far.url), async (scene) => {
    const { told, later, stage } = scene;
    const run = told("-v", "run", "./agent", "Do it");
    await stage.until(() => Promise.resolve(endpoint.requests.length > 1 ? true : undefined));
    const following = [later("attach", "1"), later("logs", "-f", "1"), later("strace", "-a", "1")];
    for (const file of ["status", "intent", "context", "fd", "mounts", "trace"]) {
      await later("cat", `/proc/1/${file}`);
    }
    for (
      const [server, tools] of [["world", ["tell", "fail", "refuse"]], ["far", [
        "where",
        "deny",
      ]]] as const
    ) {
      await later("ls", `/mnt/mcp/1-${server}/tools`);
      await later("cat", `/mnt/mcp/1-${server}/tools`);
      await later("stat", `/mnt/mcp/1-${server}/tools`, "--json");
      for (const tool of tools) {
        await later("write", `/mnt/mcp/1-${server}/tools/${tool}`, "{}");
        await later("write", `/mnt/mcp/1-${server}/tools/${tool}`, "{}", "--json");
        await later(
          "write",
          `/mnt/mcp/1-${server}/tools/${tool}`,
          `{"a":"${LITERALS.LIT.slice(0, 6)}"}`,
        );
      }
    }
    const bash = JSON.stringify({ command: "env; env | base64 -w 0" });
    await later("write", "/dev/shell/tools/Bash", bash, "--pid", "1");
    await later("top", "--json");
    await later("ps", "--json");
    if (Deno.build.os === "linux") assertDaemonIsClean(stage);
    await later("kill", "1");
    over.resolve();
    await run;
    await Promise.all(following);
    await lookAt(scene, "1");
  });
  await endpoint.close();
});

Deno.test("[C09] what a child's manifest has in plain is in nothing that is told of its parent", async () => {
  const told = (body: JsonObject) => ({ text: `Told: ${JSON.stringify(body["messages"])}` });
  const turns = new Map<string, number>();
  const endpoint = startModelEndpoint((body) => {
    const who = /I am the (\w+)/.exec(JSON.stringify(body))?.[1] ?? "";
    const turn = (turns.get(who) ?? 0) + 1;
    turns.set(who, turn);
    if (who === "child") {
      return turn % 2 === 0 ? told(body) : { calls: [{ name: "tell", arguments: "{}" }] };
    }
    if (turn > 2) return told(body);
    const intent = `After ${JSON.stringify(body["messages"])}`;
    return { calls: [{ name: "child", arguments: JSON.stringify({ intent }) }] };
  });
  await inScene(modelAt(endpoint.url), telltale(), async (scene) => {
    const { stage, told, later } = scene;
    const path = `${stage.folder}/agent/agent.yaml`;
    const child = Deno.readTextFileSync(path)
      .replace("name: agent", "name: child").replace("Work.", "I am the child");
    Deno.mkdirSync(`${stage.folder}/child`);
    Deno.writeTextFileSync(`${stage.folder}/child/agent.yaml`, child);
    Deno.writeTextFileSync(
      path,
      `name: lead\ninstructions: I am the lead\nmodels: ${modelAt(endpoint.url)}
agents: [{ name: child, manifest: ../child }]\n`,
    );
    Deno.writeTextFileSync(
      `${stage.folder}/flow.yaml`,
      `kind: workflow\nname: flow\nnodes:
  a: { agent: ./child, intent: Tell }
  b: { agent: ./child, depends_on: [a], intent: "After \${{ nodes.a.result }}" }\n`,
    );
    for (const manifest of ["./agent", "./flow.yaml"]) {
      const run = await told("-v", "run", manifest, "Do it");
      assert.equal(run.code, 0, run.text);
    }
    for (const pid of ["1", "2", "3", "4", "5", "6"]) {
      for (const way of [["logs"], ["wait"], ["strace"], ["journal", "export"]]) {
        await later(...way, pid);
        await later(...way, pid, "--json");
      }
    }
    await later("ps", "-a");
    await later("ps", "-a", "--json");
    await later("top", "--json");
    assertFilesAreClean(stage);
  });
  await endpoint.close();
});

Deno.test("[C09] mounts that fail and a provider that refuses tell no secret", async () => {
  await using far = startTellingHttpServer({ refuses: true });
  const endpoint = startModelEndpoint(() => ({
    status: 401,
    error: { message: `bad key ${VALUES.KEY} ${btoa(VALUES.KEY)}`, code: "x" },
  }));
  const scenes = [telltale("--die"), remote(far.url), telltale()];
  for (const servers of scenes) {
    await inScene(modelAt(endpoint.url), servers, async (scene) => {
      const { told } = scene;
      const run = await told("-v", "run", "./agent", "Do it");
      assert.ok([1, 3].includes(run.code), run.text);
      await lookAt(scene, "1");
      await told("--json", "run", "./agent", "Do it");
      await told("check", "mcp", "./agent", "--connect");
      for (const name of ["world", "far"]) {
        if (!servers.includes(`${name}:`)) continue;
        await told("mcp", "test", "--agent", "./agent", name);
        await told("mcp", "connect", "--agent", "./agent", name, "--json");
      }
      assertFilesAreClean(scene.stage);
    });
  }
  await endpoint.close();
});
