/** `rnix init`: the folders of user and project, and on request two example agents. */
import { resolvePaths } from "../../base/paths.ts";
import type { Command } from "../command.ts";
import { hasSwitch } from "../flag_values.ts";

export const init: Command = {
  name: "init",
  summary: "Set up configuration for you and for this project",
  positionals: [],
  flags: [{ name: "with-mcp-examples", summary: "Add two example agents with MCP servers" }],
  details: "What exists is left as it is.",
  async run(invocation, context) {
    const [{ initProject }, { TrustStore }, { disk }] = await Promise.all([
      import("../../manifest/init.ts"),
      import("../../manifest/trust.ts"),
      import("../../base/disk.ts"),
    ]);
    const paths = resolvePaths(context.env, context.world.uid);
    const report = await initProject({
      storage: disk,
      cwd: context.world.cwd,
      config: paths.config,
      env: context.env,
      trust: new TrustStore(disk, paths.state),
      withMcpExamples: hasSwitch(invocation, "with-mcp-examples"),
    });
    return {
      exitCode: 0,
      data: { created: report.created, kept: report.kept },
      text: report.lines.join("\n"),
      untrusted: true,
    };
  },
};
