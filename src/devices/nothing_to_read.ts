/** Reading a tool gives the answer to what was written before, on the same descriptor: without a call there is none. */
import { SysError } from "../base/errors.ts";

/** For a read before any call was answered. A person meets it with `rnix cat`, whose descriptor is never that of an earlier `rnix write`. */
export function nothingToRead(tool: string): SysError {
  return new SysError(
    "INVALID",
    `Nothing to read from "${tool}": no call has been answered on this descriptor`,
    {
      syscall: "Read",
      hint: "rnix write prints the answer itself; each command has a descriptor of its own",
    },
  );
}
