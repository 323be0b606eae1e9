/**
 * What the conformance suite starts as the client under test: it only types commands into `rnix mcp connect --json URL` and reads the answers.
 *
 * Usage: `adapter.ts COMMAND… URL`, where COMMAND is how rnix is started. In every scenario it does what a person would do who looks into a server: it lists tools, resources and prompts and uses each once, tools with arguments that their schemas allow, or with those that the scenario names.
 */
import { type Explored, isFields, sampleOf, type Value } from "./sample.ts";

/** How long the whole of a scenario may take; the suite itself gives up after 30 s. */
const SCENARIO_MS_MAX = 28_000;

const command = Deno.args.slice(0, -1);
const url = Deno.args.at(-1) ?? "";
const scenario = Deno.env.get("MCP_CONFORMANCE_SCENARIO") ?? "";

/** Answers by line: what was typed is answered in its order. */
class Rnix {
  readonly #child: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncGenerator<string>;

  constructor() {
    const [program = "", ...args] = command;
    this.#child = new Deno.Command(program, {
      args: [...args, "mcp", "connect", "--json", "--elicit", "defaults", url],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#stdin = this.#child.stdin.getWriter();
    this.#lines = linesOf(this.#child.stdout);
  }

  /** The answer to one command. */
  async type(line: string): Promise<Explored> {
    await this.#stdin.write(new TextEncoder().encode(`${line}\n`));
    const { done, value } = await this.#lines.next();
    if (done) throw new Error(`rnix ended at "${line}"`);
    const answer: Value = JSON.parse(value);
    if (!isFields(answer)) throw new Error(`"${line}" was answered with ${value}`);
    console.error(`${line.slice(0, 100)} → ${value.slice(0, 300)}`);
    return answer;
  }

  /** Ends it as a script would. Gives its exit code. */
  async end(): Promise<number> {
    await this.#stdin.close().catch(() => {});
    return (await this.#child.status).code;
  }

  kill(): void {
    this.#child.kill("SIGTERM");
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** The items of a listing. */
async function list(rnix: Rnix, name: string, member = name): Promise<Explored[]> {
  const { data } = await rnix.type(name);
  const items = isFields(data) ? data[member] : undefined;
  return Array.isArray(items) ? items.filter(isFields) : [];
}

/** Calls that the scenario names, or one of each tool. */
function callsOf(tools: readonly Explored[]): { name: Value; arguments: Value }[] {
  const context: Value = JSON.parse(Deno.env.get("MCP_CONFORMANCE_CONTEXT") ?? "{}");
  const named = isFields(context) ? context["toolCalls"] : undefined;
  if (Array.isArray(named)) {
    return named.filter(isFields).map((call) => ({
      name: call["name"] ?? "",
      arguments: call["arguments"] ?? {},
    }));
  }
  return tools.map((tool) => ({
    name: tool["name"] ?? "",
    arguments: sampleOf(tool["inputSchema"], { tools }),
  }));
}

async function explore(rnix: Rnix): Promise<void> {
  const tools = await list(rnix, "tools");
  for (const call of callsOf(tools)) {
    await rnix.type(`call ${JSON.stringify(call.name)} ${JSON.stringify(call.arguments)}`);
  }
  for (const { uri } of await list(rnix, "resources")) await rnix.type(`read ${String(uri)}`);
  await list(rnix, "templates", "resourceTemplates");
  for (const { name } of await list(rnix, "prompts")) {
    await rnix.type(`prompt ${JSON.stringify(name)}`);
  }
}

if (import.meta.main) {
  const rnix = new Rnix();
  const limit = setTimeout(() => {
    console.error(`Scenario "${scenario}" took longer than ${SCENARIO_MS_MAX} ms`);
    rnix.kill();
  }, SCENARIO_MS_MAX);
  await explore(rnix);
  const code = await rnix.end();
  clearTimeout(limit);
  console.error(`rnix ended with exit code ${code}`);
}
