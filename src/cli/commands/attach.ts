/** `rnix attach`: watches a run at work that was started elsewhere. */
import type { AttachFrom } from "../../base/operations.ts";
import { usageError } from "../arguments.ts";
import type { Command, Invocation } from "../command.ts";
import { hasSwitch, valueOf } from "../flag_values.ts";
import { watchRun } from "../follow.ts";

const FROM: readonly AttachFrom[] = ["start", "now"];

export const attach: Command = {
  name: "attach",
  summary: "Watch a run at work, from its first event on",
  positionals: [{ name: "run", kind: "live-run" }],
  flags: [
    {
      name: "from",
      value: "start|now",
      summary: "Where to begin (default start)",
      choices: ["start", "now"],
    },
    { name: "stream", summary: "One JSON event a line on stdout, the last one the report" },
  ],
  details:
    `Ends with the run and exits as it does. Ctrl-C only detaches (exit 130): the run goes on, since it
isn't this command's; rnix pause and rnix kill stop it.`,
  async run(invocation, context) {
    const [run = ""] = invocation.words;
    const from = fromOf(invocation);
    const stream = hasSwitch(invocation, "stream");
    return await watchRun(context, { run, stream }, async (observer) => {
      const system = await context.system();
      return await system.attach(run, from, observer);
    });
  },
};

function fromOf(invocation: Invocation): AttachFrom {
  const text = valueOf(invocation, "from") ?? "start";
  const from = FROM.find((each) => each === text);
  if (from !== undefined) return from;
  throw usageError(`"--from" doesn't know "${text}"`, `one of: ${FROM.join(", ")}`);
}
