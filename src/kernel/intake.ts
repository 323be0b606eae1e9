/** Makes a result fit to keep: text repaired, secrets out, cut to its tool's limit; in this order, so that no half of a secret is left at a cut. */
import { type Json, wellFormed } from "../base/json.ts";
import type { Redactor } from "../base/redaction.ts";
import type { BlobRef } from "../journal/entry.ts";
import { limitOutput } from "../policy/output_limit.ts";
import type { Intake } from "./ports.ts";

/** The intake of one run, with the secrets that its results must not show. */
export function createIntake(redactor: Redactor): Intake {
  const clean = (value: Json): Json => redactor.redactJson(wellFormed(value));
  return async (answer, binding, keep) => {
    const content = answer.content.map(clean);
    const structured = answer.structured === undefined ? undefined : clean(answer.structured);
    return await cut({ content, structured }, binding.outputTokensMax, keep);
  };
}

interface Clean {
  content: Json[];
  structured: Json | undefined;
}

async function cut(
  { content, structured }: Clean,
  tokensMax: number | undefined,
  keep: (whole: string) => Promise<BlobRef>,
) {
  if (tokensMax === undefined) return kept(content, structured);
  const limited = await limitOutput(content, structured, tokensMax, keep);
  return { ...kept(limited.content, limited.structured), ...wholeOf(limited.whole) };
}

function kept(content: Json[], structured: Json | undefined) {
  return { content, ...(structured === undefined ? {} : { structured }) };
}

function wholeOf(whole: BlobRef | undefined) {
  return whole === undefined ? {} : { whole };
}
