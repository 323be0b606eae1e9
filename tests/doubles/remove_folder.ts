/** Removes a test's folder in which a process may be at work to its end still: a daemon that stops, the guard of one that was killed. */

/** Far more than the last work of a daemon or of its guard takes on a loaded machine. */
const LIMIT_MS = 60_000;
const PAUSE_MS = 10;

/** Resolves when nothing of the folder is there. Rejects when something in it can't be removed for a minute. */
export async function removeFolder(folder: string): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  for (;;) {
    try {
      return Deno.removeSync(folder, { recursive: true });
    } catch (thrown) {
      if (thrown instanceof Deno.errors.NotFound && !isThere(folder)) return;
      if (performance.now() > endMs) throw thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function isThere(folder: string): boolean {
  try {
    Deno.lstatSync(folder);
    return true;
  } catch {
    return false;
  }
}
