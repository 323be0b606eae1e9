/** HTTP to the daemon over its unix socket: one value, or lines as they come. A daemon that isn't there, or goes away in the middle, is an error with exit code 8. */
import { SysError } from "../base/errors.ts";
import { EXIT_UNREACHABLE } from "../base/exit.ts";
import { withoutProxyVariables } from "../base/without_proxies.ts";
import { type ErrorAnswer, type OperationName, OPERATIONS } from "../base/wire.ts";

/** Only the path counts on a socket. An address and not a name: a name would be looked up for every request, and many look-ups at once wait for each other. */
const BASE_URL = "http://127.0.0.1";

/** Longest wait for the answer to a request that is one value. */
const VALUE_MS_MAX = 30_000;

export class DaemonSocket {
  readonly path: string;
  readonly #http: Deno.HttpClient;

  constructor(path: string) {
    this.path = path;
    this.#http = withoutProxyVariables(() =>
      Deno.createHttpClient({ proxy: { transport: "unix", path } })
    );
  }

  /** One value. Rejects with the daemon's error, with DEVICE_DISCONNECTED, or with TIMEOUT after `limitMs` (both exit 8). */
  async value<T>(operation: OperationName, body?: unknown, limitMs = VALUE_MS_MAX): Promise<T> {
    const signal = AbortSignal.timeout(limitMs);
    try {
      const response = await this.#send(operation, body, signal);
      return await response.json().catch((thrown) => {
        throw this.#lost(thrown);
      });
    } catch (thrown) {
      throw signal.aborted && isUnreachable(thrown) ? this.#silent(limitMs, thrown) : thrown;
    }
  }

  /** Lines until the operation is over; ending the iteration closes the connection, and so does `given`, whose reason is what it then rejects with. */
  async *lines<T>(
    operation: OperationName,
    body: unknown,
    given: AbortSignal = new AbortController().signal,
  ): AsyncGenerator<T> {
    const abort = new AbortController();
    const signal = AbortSignal.any([abort.signal, given]);
    const response = await this.#send(operation, body, signal).catch((thrown) => {
      throw given.aborted ? given.reason : thrown;
    });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      while (reader !== undefined) {
        const { done, value } = await reader.read().catch((thrown) => {
          throw given.aborted ? given.reason : this.#lost(thrown);
        });
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield JSON.parse(line);
      }
    } finally {
      abort.abort();
    }
  }

  close(): void {
    this.#http.close();
  }

  async #send(operation: OperationName, body: unknown, signal: AbortSignal): Promise<Response> {
    const { method, path } = OPERATIONS[operation];
    let response: Response;
    try {
      response = await fetch(`${BASE_URL}${path}`, {
        client: this.#http,
        method,
        signal,
        ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
      });
    } catch (thrown) {
      throw this.#lost(thrown);
    }
    if (response.ok) return response;
    const answer: ErrorAnswer = await response.json().catch((thrown) => {
      throw this.#lost(thrown);
    });
    throw errorOf(answer);
  }

  #silent(limitMs: number, cause: unknown): SysError {
    return new SysError("TIMEOUT", `The daemon doesn't answer within ${limitMs / 1000} s`, {
      device: this.path,
      exitCode: EXIT_UNREACHABLE,
      cause,
    });
  }

  #lost(cause: unknown): SysError {
    return new SysError("DEVICE_DISCONNECTED", "The daemon can't be reached", {
      device: this.path,
      exitCode: EXIT_UNREACHABLE,
      cause,
    });
  }
}

function isUnreachable(thrown: unknown): boolean {
  return thrown instanceof SysError && thrown.exitCode === EXIT_UNREACHABLE;
}

/** A daemon's error as an error of this process. */
export function errorOf({ error, exit_code }: ErrorAnswer): SysError {
  const { code, message, ...facts } = error;
  return new SysError(code as SysError["code"], message, { ...facts, exitCode: exit_code });
}
