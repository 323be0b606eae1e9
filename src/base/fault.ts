/**
 * What is said when rnix itself dies of a fault that nobody caught. A message may have anything in it, secrets of every run included, and which these are isn't known here: so the kind of error and the places in the code are told, and no message.
 */

/** The end of a program by such a fault, for its stderr. */
export function faultText(thrown: unknown): string {
  const kind = thrown instanceof Error ? thrown.name : typeof thrown;
  const hint = "hint: RNIX_DEBUG=1 shows its message too, which may hold secrets";
  return [`[INTERNAL] rnix ended by a fault of its own (${kind})`, ...framesOf(thrown), hint, ""]
    .join("\n");
}

/** Calls `end` with what is to be said, at the first fault that nobody caught; the runtime's own text, message and all, isn't printed. */
export function watchFaults(end: (text: string) => void): void {
  const onFault = (event: Event, thrown: unknown) => {
    event.preventDefault();
    end(faultText(thrown));
  };
  globalThis.addEventListener("error", (event) => onFault(event, event.error));
  globalThis.addEventListener("unhandledrejection", (event) => onFault(event, event.reason));
}

/** Lines of the stack without the message before them, which may look like some itself. */
function framesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error) || thrown.stack === undefined) return [];
  const { message, stack } = thrown;
  const from = stack.indexOf(message);
  if (from < 0) return [];
  return stack.slice(from + message.length).split("\n").filter((line) => /^ +at /.test(line));
}
