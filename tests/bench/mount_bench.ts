/**
 * What a mount costs: a call through it against the bare SDK on the same server, over stdio and over HTTP, alone and 64 at once; and mounting 1, 4 and 16 servers against the slowest of them alone.
 *
 * Over HTTP a call that must not be made twice has a TCP connection of its own, because one on a connection that was used before may be lost with it; what may be repeated shares connections, as all calls of the SDK do. Medians side by side: `mount_figures.ts`.
 */
import { scripted } from "../servers/launch_server.ts";
import { bench, callSubjects, SCENARIO, TRANSPORTS } from "./call_subjects.ts";

const AT_ONCE = 64;
const SLOWEST_MS = 1_000;

for (const transport of TRANSPORTS) {
  const { bare, write, idempotent } = await callSubjects(transport);
  for (const count of [1, AT_ONCE]) {
    const group = count === 1 ? `${transport}: one call` : `${transport}: ${count} calls at once`;
    const times = (call: () => Promise<unknown>) => async () => {
      await Promise.all(Array.from({ length: count }, call));
    };
    Deno.bench({ name: `bare SDK, ${group}`, group, baseline: true }, times(bare));
    Deno.bench({ name: `mount, write, ${group}`, group }, times(write));
    Deno.bench({ name: `mount, idempotent, ${group}`, group }, times(idempotent));
  }
}

for (const count of [1, 4, 16]) {
  Deno.bench({
    name: `mount of ${count}, the slowest needs ${SLOWEST_MS} ms`,
    group: "mounting",
    baseline: count === 1,
    n: 5,
    warmup: 1,
  }, async (timer) => {
    timer.start();
    const mounts = await Promise.all(
      Array.from({ length: count }, (_, index) => {
        const start = index === 0 ? { start: { delayMs: SLOWEST_MS } } : {};
        return bench.mount(scripted({ ...SCENARIO, ...start }, { server: `s${index}` }));
      }),
    );
    timer.end();
    await Promise.all(mounts.map((mount) => mount.close()));
  });
}
