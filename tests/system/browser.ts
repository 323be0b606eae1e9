/**
 * `browser.ts [chromium]`: a whole `rnix run` in which an agent opens a local page in a real browser through `@playwright/mcp` and clicks its button. Says what it sees; fails where the page or the processes say otherwise.
 *
 * It needs a Chromium (Debian: `apt-get install chromium`; else its path as the argument) and npx, which fetches the server once. No model: the agent's replies are scripted.
 */
import { join } from "node:path";
import { processesNaming } from "../servers/marked_processes.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const SERVER = "@playwright/mcp@0.0.83";
const LIMIT_MS = 300_000;

const PAGE = `<!doctype html>
<title>A page with a button</title>
<p id="said">Nobody has pressed it</p>
<button onclick="fetch('/pressed', { method: 'POST' }).then(() => said.textContent = 'It was pressed')">Press me</button>
`;

/** Named by the processes of server and browser, and by none of rnix. */
const workOf = (folder: string) => join(folder, "work");

/** The program of that name, or at that path. */
function found(program: string): string | undefined {
  const folders = (Deno.env.get("PATH") ?? "").split(":");
  const paths = program.includes("/") ? [program] : folders.map((folder) => join(folder, program));
  return paths.find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
}

/** A path, or a sentence of what is missing and the end. */
function needed(programs: readonly string[], how: string): string {
  for (const program of programs) {
    const path = found(program);
    if (path !== undefined) return path;
  }
  console.error(`This needs ${programs.join(" or ")}: ${how}`);
  Deno.exit(2);
}

const script = (url: string) =>
  `turns:
  - text: I open the page.
    calls: [{ tool: browser_navigate, input: { url: "${url}" } }]
  - text: I read it.
    calls: [{ tool: browser_snapshot, input: {} }]
  - text: I press its button.
    calls: [{ tool: browser_click, input: { element: Press me, target: button } }]
  - id: after
    text: I wait for what it says and read it again.
    calls: [{ tool: browser_wait_for, input: { text: It was pressed } }]
  - text: "\${{ results.after.0.text }}"
`;

function manifest(command: string, chromium: string, folder: string): string {
  const args = ["-y", SERVER, "--headless", "--isolated", "--executable-path", chromium];
  // Chromium's sandbox refuses root.
  if (Deno.uid() === 0) args.push("--no-sandbox");
  args.push("--output-dir", join(workOf(folder), "output"));
  return `name: browsing
instructions: Press the button.
models: { provider: scripted, script: script.yaml }
mcp:
  servers:
    playwright:
      command: ${JSON.stringify(command)}
      args: ${JSON.stringify(args)}
      startup_timeout: 3m
      timeout: 1m
      tools: { effects: { browser_snapshot: read, browser_wait_for: read } }
`;
}

interface Envelope {
  ok: boolean;
  data?: { result: string; turns: number; exit_code: number };
  error?: { message: string; hint?: string };
}

async function rnix(folder: string, ...args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(join(ROOT, "scripts/rnix"), {
    args: ["--json", ...args],
    cwd: folder,
    // The browser's profile lies there too, and so its command lines name it.
    env: { RNIX_HOME: join(folder, "home"), TMPDIR: workOf(folder), NO_COLOR: "1" },
    stdin: "null",
    stderr: "inherit",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  return new TextDecoder().decode(stdout);
}

/** Whether what was seen is what had to be; it is said in any case. */
function seen(what: string, value: string | number, holds: boolean): boolean {
  console.log(`${holds ? "ok   " : "WRONG"} ${what}: ${value}`);
  return holds;
}

async function browse(folder: string, npx: string, chromium: string): Promise<boolean> {
  const asked: string[] = [];
  let browsers = 0;
  await using site = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) => {
      const { pathname } = new URL(request.url);
      asked.push(`${request.method} ${pathname}`);
      browsers = Math.max(browsers, (await processesNaming(workOf(folder))).length);
      if (pathname === "/pressed") return new Response(null, { status: 204 });
      return new Response(PAGE, { headers: { "content-type": "text/html" } });
    },
  );
  Deno.mkdirSync(workOf(folder));
  Deno.writeTextFileSync(join(folder, "agent.yaml"), manifest(npx, chromium, folder));
  Deno.writeTextFileSync(
    join(folder, "script.yaml"),
    script(`http://127.0.0.1:${site.addr.port}/`),
  );
  const text = await rnix(folder, "run", join(folder, "agent.yaml"), "Press the button");
  const { data, error }: Envelope = JSON.parse(text);
  if (error !== undefined) console.log(`${error.message}\n${error.hint ?? ""}`);
  const left = await processesNaming(workOf(folder));
  const presses = asked.filter((line) => line === "POST /pressed").length;
  return [
    seen("the run's exit code", data?.exit_code ?? "none", data?.exit_code === 0),
    seen("the page was asked for", asked.join(", "), asked.includes("GET /")),
    seen("its button was pressed, times", presses, presses === 1),
    seen(
      "the page says",
      data?.result.match(/It was pressed/)?.[0] ?? data?.result ?? "nothing",
      data?.result.includes("It was pressed") === true,
    ),
    seen("processes of server and browser during the run", browsers, browsers > 0),
    seen("processes left after it", left.length, left.length === 0),
  ].every((holds) => holds);
}

async function main(): Promise<boolean> {
  const chromium = needed(
    Deno.args[0] === undefined ? ["chromium", "chromium-browser"] : [Deno.args[0]],
    "on Debian `apt-get install chromium`, or give the path of one as the argument",
  );
  const npx = needed(["npx"], "it comes with Node");
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-browser-" }));
  try {
    return await browse(folder, npx, chromium);
  } finally {
    await rnix(folder, "daemon", "stop");
    Deno.removeSync(folder, { recursive: true });
  }
}

if (import.meta.main && !await main()) Deno.exit(1);
