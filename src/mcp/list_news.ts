/**
 * News of changed lists from a server of 2026-07-28, which tells only who subscribed.
 *
 * A subscription that was open and ended is taken out anew, in pauses that grow, and counts as news: what changed in between was told to nobody. One that is refused isn't asked for again; that costs nothing but the news.
 */
import type { Client } from "@modelcontextprotocol/client";
import { type Clock, sleep } from "../base/clock.ts";

const PAUSE_MS_MIN = 1_000;
const PAUSE_MS_MAX = 60_000;

/** Subscribes until the signal aborts. Never rejects. */
export async function subscribeToNews(
  client: Pick<Client, "listen">,
  wanted: Parameters<Client["listen"]>[0],
  clock: Clock,
  signal: AbortSignal,
  onMissed: () => void,
): Promise<void> {
  for (let pauseMs = PAUSE_MS_MIN; !signal.aborted; pauseMs *= 2) {
    try {
      const sinceMs = clock.monotonic();
      const subscription = await client.listen(wanted);
      if (pauseMs > PAUSE_MS_MIN) onMissed();
      await subscription.closed;
      if (clock.monotonic() - sinceMs >= PAUSE_MS_MAX) pauseMs = PAUSE_MS_MIN;
      await sleep(clock, Math.min(pauseMs, PAUSE_MS_MAX), signal);
    } catch {
      return;
    }
  }
}
