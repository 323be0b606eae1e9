/** `rnix version`. */
import { VERSION } from "../../base/version.ts";
import type { Command } from "../command.ts";

export const version: Command = {
  name: "version",
  summary: "Show the version",
  positionals: [],
  flags: [],
  run(_invocation, context) {
    const { runtime, platform } = context.world;
    return Promise.resolve({
      exitCode: 0,
      data: { version: VERSION, runtime, platform },
      text: `rnix ${VERSION} (${runtime}, ${platform})`,
    });
  },
};
