/** The secrets that a run's own folder tells: literal values of its stored manifests, which its journal holds in plain and nobody is to be shown. */
import { Redactor } from "../base/redaction.ts";
import type { Storage } from "../base/storage.ts";
import type { BlobRef } from "../journal/entry.ts";
import { readRun } from "../journal/mod.ts";
import { literalSecretsOf } from "../manifest/secret_values.ts";
import { storedAgent } from "./stored_agent.ts";

/** Knows the literals of every manifest that the run has had. Rejects where the journal can't be read. */
export async function storedRedactor(storage: Storage, folder: string): Promise<Redactor> {
  const specs = new Map<string, BlobRef>();
  await readRun(storage, folder, (entry) => {
    if (entry.type !== "run.started" && entry.type !== "run.resumed") return;
    specs.set(JSON.stringify(entry.spec), entry.spec);
  });
  return await specsRedactor(storage, folder, [...specs.values()]);
}

/** Knows the literals of these manifests, as far as they can be read. */
export async function specsRedactor(
  storage: Storage,
  folder: string,
  specs: readonly BlobRef[],
): Promise<Redactor> {
  const agents = await Promise.all(
    specs.map((spec) => storedAgent(storage, folder, spec)),
  );
  return new Redactor(
    agents.flatMap((agent) => agent === undefined ? [] : literalSecretsOf(agent)),
  );
}
