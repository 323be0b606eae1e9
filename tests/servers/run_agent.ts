/** One run in an OS process of its own, for tests that kill it: `deno run -A run_agent.ts MANIFEST INTENT`. Prints the run's id, then its report, one JSON object a line. */
import { createSystem } from "../../src/daemon/mod.ts";

const [manifest = "", intent = ""] = Deno.args;
const env = Deno.env.toObject();
const print = (value: unknown) =>
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(value)}\n`));

const { system, close } = await createSystem({ env, uid: Deno.uid() ?? 0, osPid: Deno.pid });
const handle = await system.run({
  manifest,
  intent,
  trust: false,
  client: { cwd: Deno.cwd(), env, interactive: false },
}, { onEvent: () => {} });
print({ run_id: handle.runId });
print(await handle.done);
await close();
