/** A stand-in for rnix that gets killed: starts the guard, mounts the launches given as JSON, prints `up`, then waits for its end. */
import { systemClock } from "../../src/base/clock.ts";
import { startGuard } from "../../src/base/guard.ts";
import { McpMountDriver } from "../../src/devices/mcp/mcp_driver.ts";
import type { StdioLaunch } from "../../src/mcp/launch.ts";

const [instance = "", text = "[]"] = Deno.args;
const launches: StdioLaunch[] = JSON.parse(text);
const guard = startGuard({ instance });
const driver = new McpMountDriver({
  clock: systemClock,
  keeper: () => guard,
  clientInfo: { name: "victim", version: "0" },
});
await Promise.all(launches.map((config) =>
  driver.mount({
    server: config.server,
    required: true,
    rules: { effects: {}, risk: {}, sensitive: [] },
    outputTokensMax: undefined,
    config: { ...config, share: false },
  }, { pid: 1, signal: new AbortController().signal })
));
Deno.stdout.writeSync(new TextEncoder().encode("up\n"));
await new Promise(() => setInterval(() => {}, 1 << 30));
