/** The manifest that a run has in its own folder, for who only tells of the run. */
import type { Storage } from "../base/storage.ts";
import type { BlobRef } from "../journal/entry.ts";
import { BlobStore } from "../journal/mod.ts";
import type { LoadedAgent } from "../manifest/agent_manifest.ts";
import { loadSpec } from "../manifest/spec.ts";

/** Undefined for one that is gone or can't be read by this version: its run can still be told of. */
export async function storedAgent(
  storage: Storage,
  folder: string,
  spec: BlobRef,
): Promise<LoadedAgent | undefined> {
  try {
    const text = new TextDecoder().decode(await new BlobStore(storage, folder).get(spec));
    return loadSpec(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** How each server of a run is reached, by name; none where the manifest can't be read. */
export async function transportsOf(
  storage: Storage,
  folder: string,
  spec: BlobRef | undefined,
): Promise<Map<string, string>> {
  const agent = spec === undefined ? undefined : await storedAgent(storage, folder, spec);
  const servers = agent?.manifest.servers ?? [];
  return new Map(servers.map(({ name, transport }) => [name, transport]));
}
