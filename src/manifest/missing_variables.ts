/** Variables that are not set where they must be: all of them in one error, each with the keys that want it. */
import { SysError } from "../base/errors.ts";
import { EXIT_MOUNT } from "../base/exit.ts";
import { formatPlace, type Place } from "./places.ts";
import { unique } from "./secret_values.ts";

/** A variable, and a key that wants it. */
export interface Missing {
  variable: string;
  key: string;
  /** Where the variable stands, if that is known. */
  place?: Place | undefined;
}

/** INVALID (exit 3). `servers`: those that can't be mounted; none where it is not about servers. */
export function missingError(missing: readonly Missing[], servers: readonly string[]): SysError {
  const keys = new Map<string, string[]>();
  for (const { variable, key, place } of missing) {
    const where = place === undefined ? key : `${key} at ${formatPlace(place)}`;
    keys.set(variable, [...(keys.get(variable) ?? []), where]);
  }
  const names = [...keys.keys()];
  const told = [...keys].map(([variable, places]) =>
    `"${variable}" (${unique(places).join(", ")})`
  );
  const single = servers.length === 1 ? servers[0] : undefined;
  return new SysError(
    "INVALID",
    `${names.length === 1 ? "Variable" : "Variables"} ${told.join(", ")} ${
      names.length === 1 ? "is" : "are"
    } not set`,
    {
      hint: `export ${names.map((name) => `${name}=…`).join(" ")}, or give a default: \${${
        names[0]
      }:-…}`,
      syscall: servers.length === 0 ? undefined : "Mount",
      device: single,
      exitCode: EXIT_MOUNT,
    },
  );
}
