/** `rnix run`: starts an agent and stays with it until it ends or is suspended. */
import type { Command, Context, Flag, Invocation, Outcome } from "../command.ts";
import { usageError } from "../arguments.ts";
import { budgetOf, hasSwitch, namedValuesOf, valueOf } from "../flag_values.ts";
import { startDetached } from "../follow.ts";
import { PROMPT_FLAGS, promptWords } from "./run_prompt.ts";
import { clientFacts, type Start, supervise } from "../supervise.ts";

/** Flags that `run` and `resume` share. */
export const LIMIT_FLAGS: readonly Flag[] = [
  { name: "detach", short: "d", summary: "Leave it to itself once it is up, and print its pid" },
  { name: "model", value: "MODEL", summary: "Use this model of the agent's provider" },
  { name: "max-turns", value: "N", summary: "At most N model turns in all" },
  {
    name: "budget",
    value: "KEY=VALUE",
    repeated: true,
    summary: "A limit in all: turns, tokens, tool_calls, duration or cost_usd",
  },
  { name: "timeout", value: "DURATION", summary: "Active time in all, as --budget duration=" },
  { name: "stream", summary: "One JSON event a line on stdout, the last one the report" },
  { name: "trust", summary: "Trust the files of this project that it takes, and say which" },
];

export const run: Command = {
  name: "run",
  summary: "Run an agent or a workflow: a manifest, its folder, or its name",
  positionals: [{ name: "manifest", kind: "agent" }, {
    name: "intent",
    optional: true,
    rest: true,
  }],
  flags: [
    {
      name: "set",
      value: "NAME=VALUE",
      repeated: true,
      summary: "A parameter of the workflow that is run",
    },
    ...PROMPT_FLAGS,
    { name: "dry-run", summary: "Say what a workflow would do, and start nothing" },
    ...LIMIT_FLAGS,
  ],
  details:
    `The final text goes to stdout, everything else to stderr. Ctrl-C suspends the run, twice ends it;
what is suspended goes on with rnix resume. A run that lost its terminal is suspended too; one that was
started with -d isn't.`,
  async run(invocation, context) {
    const [manifest = "", ...intent] = invocation.words;
    const budget = budgetOf(invocation);
    const model = valueOf(invocation, "model");
    const parameters = namedValuesOf(invocation, "set");
    if (hasSwitch(invocation, "dry-run")) return await plan(manifest, parameters ?? {}, context);
    const stream = hasSwitch(invocation, "stream");
    const prompt = await promptWords(manifest, invocation, context);
    const words = [...(prompt === undefined ? [] : [prompt]), intent.join(" ")];
    return await stayOrDetach(invocation, context, async (observer) => {
      const system = await context.system();
      return await system.run({
        manifest,
        intent: words.filter((each) => each !== "").join("\n\n"),
        client: clientFacts(context, stream),
        trust: hasSwitch(invocation, "trust"),
        ...(hasSwitch(invocation, "detach") ? { detached: true } : {}),
        ...(model === undefined ? {} : { model }),
        ...(budget === undefined ? {} : { budget }),
        ...(parameters === undefined ? {} : { parameters }),
      }, observer);
    });
  },
};

/** What a workflow would do. A manifest with mistakes, or a parameter without a value, ends it as it would end the run. */
async function plan(
  manifest: string,
  parameters: { [name: string]: string },
  context: Context,
): Promise<Outcome> {
  const system = await context.system();
  const { cwd, columns } = context.world;
  const view = await system.graph({ of: manifest, client: { cwd, env: context.env }, parameters });
  const { planText, sizeOf } = await import("../graph_text.ts");
  const head = `${view.name} would run ${sizeOf(view)}; nothing was started`;
  return { exitCode: 0, data: view, text: planText(view, head, columns()), untrusted: true };
}

/** Stays with a run to its end, or with `-d` until it is up. */
export async function stayOrDetach(
  invocation: Invocation,
  context: Context,
  start: Start,
): Promise<Outcome> {
  const stream = hasSwitch(invocation, "stream");
  if (!hasSwitch(invocation, "detach")) return await supervise(context, stream, start);
  if (stream) {
    throw usageError(
      '"--detach" and "--stream" exclude each other',
      "rnix logs -f --stream RUN follows it",
    );
  }
  return await startDetached(context, start);
}
