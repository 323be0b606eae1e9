/** Bytes of a process's output as lines of text. */

export class TextLineStream implements TransformStream<Uint8Array, string> {
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<Uint8Array>;

  constructor() {
    const decoder = new TextDecoder();
    let rest = "";
    const { readable, writable } = new TransformStream<Uint8Array, string>({
      transform(chunk, controller) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) controller.enqueue(line);
      },
      flush(controller) {
        if (rest !== "") controller.enqueue(rest);
      },
    });
    this.readable = readable;
    this.writable = writable;
  }
}
