/**
 * A run as one document: JSON with every entry and its contents in place, or a transcript that a person reads (`transcript.ts`). Made a piece at a time, so that a long run needs no more memory than its longest entry.
 *
 * What leaves is what every other place may show: literal secrets of the manifest are redacted, arguments and results of sensitive tools masked. What can't be read is told where it stood.
 */
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { Storage } from "../base/storage.ts";
import type { ExportFormat } from "../base/upkeep.ts";
import type { BlobRef, CallAnswer, Entry } from "../journal/entry.ts";
import { BlobStore, type Readable, readableEntries } from "../journal/mod.ts";
import { MASKED } from "../kernel/answers.ts";
import { READ_RESULT } from "../policy/result_piece.ts";
import { type ExportFacts, exportFacts, runFacts } from "./export_facts.ts";
import { transcriptOf } from "./transcript.ts";

/** Of the form of the JSON document. */
const DOCUMENT_VERSION = 1;
/** A cut result's whole text is put in its place up to here. */
const WHOLE_BYTES_MAX = 1024 * 1024;

const INVISIBLE = /[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Rejects with NOT_FOUND, INVALID (a newer format) or JOURNAL_DAMAGED before the first piece, or with the storage's errors. */
export async function* exportRun(
  storage: Storage,
  folder: string,
  format: ExportFormat,
): AsyncGenerator<string> {
  const facts = await exportFacts(storage, folder);
  const entries = shownEntries(storage, folder, facts);
  if (format === "markdown") yield* transcriptOf(redactedFacts(facts), entries);
  else yield* documentOf(redactedFacts(facts), withWholes(entries, { storage, folder, facts }));
}

function redactedFacts(facts: ExportFacts): JsonObject {
  const redacted = facts.redactor.redactJson(runFacts(facts));
  return isJsonObject(redacted) ? redacted : {};
}

async function* documentOf(
  run: JsonObject,
  entries: AsyncIterable<Readable>,
): AsyncGenerator<string> {
  const head = { format: "rnix-run", version: DOCUMENT_VERSION, run };
  yield `${jsonOf(head).slice(0, -1)},\n"entries":[`;
  let before = "\n";
  const damage: Json[] = [];
  for await (const readable of entries) {
    if (readable.kind === "entry") {
      yield `${before}${jsonOf(readable.entry)}`;
      before = ",\n";
    } else {
      const { record, offset, problem } = readable;
      damage.push({ record, offset, problem });
    }
  }
  yield `\n],\n"damage":${jsonOf(damage)}}\n`;
}

/** JSON that moves no cursor and reorders no letters on a terminal. */
function jsonOf(value: object): string {
  return JSON.stringify(value).replace(
    INVISIBLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A run's entries as every place may show them; what can't be read is told where it stood. */
export async function* shownEntries(
  storage: Storage,
  folder: string,
  facts: ExportFacts,
): AsyncGenerator<Readable> {
  const mask = new Mask(facts.sensitive);
  for await (const readable of readableEntries(storage, folder)) {
    if (readable.kind === "damaged") yield readable;
    else {
      const masked = mask.entry(readable.entry) as unknown as Json;
      yield { kind: "entry", entry: facts.redactor.redactJson(masked) as unknown as Entry };
    }
  }
}

/** Puts stored manifests and whole texts in the place of their names. */
async function* withWholes(
  entries: AsyncIterable<Readable>,
  { storage, folder, facts }: { storage: Storage; folder: string; facts: ExportFacts },
): AsyncGenerator<Readable> {
  const blobs = new BlobStore(storage, folder);
  const inPlace = async (ref: BlobRef) => {
    if (ref.bytes > WHOLE_BYTES_MAX) return { ...ref, left_out: true };
    const content = await blobs.get(ref).catch(() => undefined);
    if (content === undefined) return { ...ref, lost: true };
    return { ...ref, text: facts.redactor.redact(new TextDecoder().decode(content)) };
  };
  for await (const readable of entries) {
    if (readable.kind === "entry") {
      const { entry } = readable;
      if (entry.type === "run.started" || entry.type === "run.resumed") {
        const spec = facts.specs.get(entry.spec.sha256);
        const content = spec === undefined ? {} : { content: facts.redactor.redactJson(spec) };
        Object.assign(entry, { spec: { ...entry.spec, ...content } });
      }
      const answer: CallAnswer | undefined = answerIn(entry);
      if (answer?.whole !== undefined) {
        Object.assign(answer, { whole: await inPlace(answer.whole) });
      }
    }
    yield readable;
  }
}

function answerIn(entry: Entry): CallAnswer | undefined {
  if (entry.type === "call.settled") return entry.answer;
  const isResult = entry.type === "call.result" || entry.type === "access.result";
  return isResult && entry.outcome !== "unknown" ? entry : undefined;
}

/** Follows a run's calls far enough to know which contents are of sensitive tools. */
class Mask {
  readonly #sensitive: ReadonlySet<string>;
  /** Tools by call, as replies and intents name them. */
  readonly #tools = new Map<string, string>();
  /** What reads a cut result shows what that result showed. */
  #masksReads = false;

  constructor(sensitive: ReadonlySet<string>) {
    this.#sensitive = sensitive;
  }

  /** A copy where something is masked or may be changed later. */
  entry(entry: Entry): Entry {
    switch (entry.type) {
      case "model.reply":
        return { ...entry, message: this.#message(entry.turn, entry.message) };
      case "call.intent":
        this.#tools.set(entry.call, entry.tool);
        return entry;
      case "call.result":
        if (entry.outcome === "unknown" || !this.#isSensitive(entry.call)) return { ...entry };
        return { ...entry, ...this.#answer(entry) };
      case "access.intent":
        if (entry.tool !== undefined) this.#tools.set(entry.call, entry.tool);
        if (entry.input === undefined || !this.#isSensitive(entry.call)) return entry;
        return { ...entry, input: MASKED };
      case "access.result":
        if (entry.outcome === "unknown" || !this.#isSensitive(entry.call)) return { ...entry };
        return { ...entry, ...this.#answer(entry) };
      case "call.settled":
        if (entry.answer === undefined) return entry;
        return {
          ...entry,
          answer: this.#isSensitive(entry.call) ? this.#answer(entry.answer) : { ...entry.answer },
        };
      default:
        return { ...entry };
    }
  }

  #isSensitive(call: string): boolean {
    const tool = this.#tools.get(call) ?? "";
    return this.#sensitive.has(tool) || this.#masksReads && tool === READ_RESULT;
  }

  #answer(answer: CallAnswer): CallAnswer {
    const { outcome, whole } = answer;
    this.#masksReads ||= whole !== undefined;
    const masked = { ...answer, outcome, content: [{ type: "text", text: MASKED }] };
    delete masked.structured;
    delete masked.whole;
    delete masked.warnings;
    return masked;
  }

  #message(turn: number, message: Json): Json {
    if (!isJsonObject(message) || !Array.isArray(message["parts"])) return message;
    let position = 0;
    const parts = message["parts"].map((part) => {
      if (!isJsonObject(part) || part["type"] !== "tool-call") return part;
      const { type, tool = "", provider_id = "" } = part;
      this.#tools.set(`t${turn}.${++position}`, String(tool));
      if (!this.#sensitive.has(String(tool))) return part;
      return { type, tool, provider_id, input: MASKED };
    });
    return { ...message, parts };
  }
}
