/** `rnix run`: starts an agent and stays with it until it ends or is suspended. */
import type { Command, Flag } from "../command.ts";
import { budgetOf, hasSwitch, valueOf } from "../flag_values.ts";
import { clientFacts, supervise } from "../supervise.ts";

/** Flags that `run` and `resume` share. */
export const LIMIT_FLAGS: readonly Flag[] = [
  { name: "model", value: "MODEL", summary: "Use this model of the agent's provider" },
  { name: "max-turns", value: "N", summary: "At most N model turns in all" },
  {
    name: "budget",
    value: "KEY=VALUE",
    repeated: true,
    summary: "A limit in all: turns, tokens, tool_calls or duration",
  },
  { name: "timeout", value: "DURATION", summary: "Active time in all, as --budget duration=" },
  { name: "stream", summary: "One JSON event a line on stdout, the last one the report" },
  { name: "trust", summary: "Trust an agent found by name in this project" },
];

export const run: Command = {
  name: "run",
  summary: "Run an agent: a manifest, its folder, or its name",
  positionals: [{ name: "manifest" }, { name: "intent", optional: true, rest: true }],
  flags: LIMIT_FLAGS,
  details:
    `The final text goes to stdout, everything else to stderr. Ctrl-C suspends the run, twice ends it;
what is suspended goes on with rnix resume.`,
  async run(invocation, context) {
    const [manifest = "", ...intent] = invocation.words;
    const budget = budgetOf(invocation);
    const model = valueOf(invocation, "model");
    const stream = hasSwitch(invocation, "stream");
    return await supervise(context, stream, async (observer) => {
      const system = await context.system();
      return await system.run({
        manifest,
        intent: intent.join(" "),
        client: clientFacts(context, stream),
        trust: hasSwitch(invocation, "trust"),
        ...(model === undefined ? {} : { model }),
        ...(budget === undefined ? {} : { budget }),
      }, observer);
    });
  },
};
