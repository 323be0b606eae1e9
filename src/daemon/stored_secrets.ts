/** The secrets that a run's own folder tells: literal values of its stored manifests, which its journal holds in plain and nobody is to be shown. */
import { Redactor } from "../base/redaction.ts";
import type { Storage } from "../base/storage.ts";
import type { BlobRef } from "../journal/entry.ts";
import { BlobStore, readRun } from "../journal/mod.ts";
import { literalSecrets } from "../manifest/expand.ts";
import { loadSpec } from "../manifest/spec.ts";

/** Knows the literals of every manifest that the run has had. Rejects where the journal can't be read. */
export async function storedRedactor(storage: Storage, folder: string): Promise<Redactor> {
  const specs = new Map<string, BlobRef>();
  await readRun(storage, folder, (entry) => {
    if (entry.type !== "run.started" && entry.type !== "run.resumed") return;
    specs.set(JSON.stringify(entry.spec), entry.spec);
  });
  const blobs = new BlobStore(storage, folder);
  const secrets = await Promise.all([...specs.values()].map((spec) => literalsOf(blobs, spec)));
  return new Redactor(secrets.flat());
}

/** None of a manifest that is gone or can't be read by this version: its run can still be told of. */
async function literalsOf(blobs: BlobStore, spec: BlobRef): Promise<string[]> {
  try {
    const text = new TextDecoder().decode(await blobs.get(spec));
    return literalSecrets(loadSpec(JSON.parse(text)).manifest);
  } catch {
    return [];
  }
}
