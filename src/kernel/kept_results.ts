/**
 * `/proc/self/results`: results of this run that were cut on their way to its model, readable in pieces.
 *
 * Only what the run's own ledger names as a cut result can be read: no blob of another run, and no other blob of this one. The text is what was kept at intake, without secrets. Reading changes nothing, so the tool's class is `read`; a call of it is journaled as any other.
 */
import { SysError } from "../base/errors.ts";
import { isJsonObject, type Json } from "../base/json.ts";
import type { BlobRef } from "../journal/entry.ts";
import { pieceOf, READ_RESULT, resultName } from "../policy/result_piece.ts";
import { tokenCounter } from "../policy/token_counter.ts";
import type {
  Device,
  DeviceFile,
  DeviceOutcome,
  NodeFacts,
  ToolDefinition,
} from "../vfs/device.ts";
import type { KeptResult } from "./ledger.ts";
import type { ToolBinding } from "./tool_table.ts";

/** Path in the process's own view. */
export const RESULTS_DEVICE = "/proc/self/results";

/** Tokens of a piece of a result whose tool has no limit any more. */
const PIECE_TOKENS_DEFAULT = 4096;
const NAMES_SHOWN = 10;

const DEFINITION: ToolDefinition = {
  name: READ_RESULT,
  modelName: READ_RESULT,
  description:
    "Reads a result that was too long and was cut, in pieces. The mark in a cut result names it and the offset at which the missing part begins; each piece says where it goes on.",
  inputSchema: {
    type: "object",
    properties: {
      result: { type: "string", description: "Name of the cut result, from its mark" },
      offset: {
        type: "integer",
        minimum: 0,
        description: "Where to begin, in characters from 0 (the default)",
      },
      limit: {
        type: "integer",
        minimum: 1,
        description: "At most so many characters; left out: as many as a result may have",
      },
    },
    required: ["result"],
    additionalProperties: false,
  },
};

/** Where a process has its results. */
export function resultsPath(pid: number): string {
  return `/proc/${pid}/results`;
}

/** The tool that reads `kept`; masked where any of it came from a tool that is. */
export function readResultBinding(kept: readonly KeptResult[], pid: number): ToolBinding {
  return {
    definition: DEFINITION,
    server: undefined,
    device: RESULTS_DEVICE,
    path: resultsPath(pid),
    effect: "read",
    risk: "low",
    sensitive: kept.some(({ sensitive }) => sensitive),
    // Pieces keep to the limit of the result that they are of.
    outputTokensMax: undefined,
  };
}

export interface KeptResultsHost {
  /** Cut results of the run so far. */
  kept(): readonly KeptResult[];
  getBlob(ref: BlobRef): Promise<Uint8Array>;
  /** The limit of a tool's results, tokens; undefined for none. */
  tokensMax(tool: string): number | undefined;
}

export class KeptResults implements Device {
  readonly #host: KeptResultsHost;

  constructor(host: KeptResultsHost) {
    this.#host = host;
  }

  open(path: string): DeviceFile {
    this.#require(path);
    return new ResultsFile(this.#host);
  }

  stat(path: string): NodeFacts {
    this.#require(path);
    return { kind: "tool", path: "" };
  }

  list(path: string): Promise<string[]> {
    this.#require(path);
    return Promise.resolve(this.#host.kept().map(({ sha256 }) => resultName(sha256)));
  }

  #require(path: string): void {
    if (path === "") return;
    throw new SysError("NOT_FOUND", `No "${path}" among the results`, {
      device: RESULTS_DEVICE,
      hint: `Write {"result": NAME} to ${RESULTS_DEVICE}`,
    });
  }
}

interface PieceArguments {
  result: string;
  offset: number;
  limit: number | undefined;
}

class ResultsFile implements DeviceFile {
  readonly #host: KeptResultsHost;
  #last: string | undefined;
  #closed = false;

  constructor(host: KeptResultsHost) {
    this.#host = host;
  }

  async write(input: Json): Promise<DeviceOutcome> {
    if (this.#closed) throw closedError();
    try {
      this.#last = await this.#piece(argumentsOf(input));
      return { kind: "answer", isError: false, content: [{ type: "text", text: this.#last }] };
    } catch (thrown) {
      if (thrown instanceof SysError) return { kind: "not-sent", error: thrown };
      throw thrown;
    }
  }

  /** The last piece, or before one the names of what can be read. */
  read(): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(closedError());
    const names = () => JSON.stringify(this.#host.kept().map(({ sha256 }) => resultName(sha256)));
    return Promise.resolve(new TextEncoder().encode(this.#last ?? names()));
  }

  close(): void {
    this.#closed = true;
  }

  async #piece({ result, offset, limit }: PieceArguments): Promise<string> {
    const kept = this.#find(result);
    const bytes = await this.#host.getBlob(kept);
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    const tokensMax = this.#host.tokensMax(kept.tool) ?? PIECE_TOKENS_DEFAULT;
    const piece = pieceOf(await tokenCounter(), text, { offset, limit, tokensMax });
    if (piece !== undefined) return piece;
    throw invalid(`Result "${result}" has ${text.length} characters: nothing is at ${offset}`);
  }

  #find(name: string): KeptResult {
    const all = this.#host.kept();
    const [found, other] = all.filter(({ sha256 }) => name !== "" && sha256.startsWith(name));
    if (found !== undefined && other === undefined) return found;
    const names = all.slice(-NAMES_SHOWN).map(({ sha256 }) => resultName(sha256)).join(", ");
    throw new SysError(
      "NOT_FOUND",
      found === undefined
        ? `No result of this run that was cut is named "${name}"; there is: ${names}`
        : `Several results begin with "${name}"; give the whole name`,
    );
  }
}

function argumentsOf(input: Json): PieceArguments {
  const given = isJsonObject(input) ? input : {};
  const { result, offset = 0, limit } = given;
  const unknown = Object.keys(given).find((key) => !["result", "offset", "limit"].includes(key));
  if (unknown !== undefined) throw invalid(`${READ_RESULT} takes no argument "${unknown}"`);
  if (typeof result !== "string") throw invalid(`${READ_RESULT} needs "result", a text`);
  if (!isCount(offset, 0)) throw invalid('"offset" must be a whole number from 0 on');
  if (limit !== undefined && !isCount(limit, 1)) {
    throw invalid('"limit" must be a whole number from 1 on');
  }
  return { result, offset, limit };
}

function isCount(value: Json, least: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least;
}

function invalid(message: string): SysError {
  return new SysError("INVALID", message, { device: RESULTS_DEVICE });
}

function closedError(): SysError {
  return new SysError("INVALID", `"${RESULTS_DEVICE}" is closed`, { hint: "Open it again" });
}
