/**
 * Makes an abort certain: it reaches whoever waits, whatever the libraries below do with their signal.
 *
 * A runtime may lose a signal that only libraries hold (one that `AbortSignal.any` or `fetch` derived is collected as garbage while its body hangs). So signals are joined by plain listeners here, a waiter is let go by the join itself, and a body is cancelled by hand.
 */

/** One signal made of several, and what waits on it. */
export class AbortJoin {
  readonly #controller = new AbortController();
  readonly #sources: readonly AbortSignal[];
  readonly #onAbort: (event: Event) => void;
  readonly #waiting = new Set<(reason: unknown) => void>();

  constructor(sources: readonly AbortSignal[]) {
    this.#sources = sources;
    this.#onAbort = ({ target }) => {
      if (target instanceof AbortSignal) this.#abort(target.reason);
    };
    for (const source of sources) {
      if (source.aborted) this.#abort(source.reason);
      else source.addEventListener("abort", this.#onAbort);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What `work` gives; rejects with the reason as soon as a source aborts. `work` goes on unheard. */
  race<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#controller;
      if (signal.aborted) reject(signal.reason);
      else this.#waiting.add(reject);
      work.then(resolve, reject).then(() => this.#waiting.delete(reject));
    });
  }

  /** Lets go of the sources. To be called once nothing waits any more. */
  release(): void {
    for (const source of this.#sources) source.removeEventListener("abort", this.#onAbort);
  }

  /** The same response with a body that fails, and lets go of its connection, as soon as a source aborts. */
  guard(response: Response): Response {
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    return new Response(this.#guardBody(body), { status, statusText, headers });
  }

  #guardBody(body: ReadableStream<Uint8Array<ArrayBuffer>>) {
    const reader = body.getReader();
    const letGo = (reason: unknown) => {
      this.#waiting.delete(letGo);
      reader.cancel(reason).catch(() => {});
    };
    if (this.signal.aborted) letGo(this.signal.reason);
    else this.#waiting.add(letGo);
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: async (controller) => {
        const { done, value } = await this.race(reader.read());
        if (!done) return controller.enqueue(value);
        this.#waiting.delete(letGo);
        controller.close();
      },
      cancel: letGo,
    }, { highWaterMark: 0 });
  }

  #abort(reason: unknown): void {
    if (this.signal.aborted) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#controller.abort(reason);
    for (const reject of waiting) reject(reason);
  }
}
