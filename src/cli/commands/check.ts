/** `rnix check`: everything that can be said of a setup without running it: files, manifests, model providers and their keys, MCP servers. */
import type { CheckFault } from "../../manifest/check.ts";
import type { CheckedProvider } from "../../manifest/check_providers.ts";
import { counted } from "../amounts.ts";
import type { Command } from "../command.ts";
import { transportFaults } from "./check_mcp.ts";
import { onceEach } from "../../manifest/check.ts";
import { checkOutcome, mcpData, prepareCheck } from "./check_outcome.ts";
import { readyFaults } from "./check_ready.ts";
import {
  EXAMPLES_ADVICE,
  manifestLines,
  mcpLines,
  NOTHING_CONFIGURED,
  providerLines,
} from "./check_text.ts";

export const check: Command = {
  name: "check",
  summary: "Check manifests, model providers and MCP servers",
  positionals: [{ name: "agent", kind: "agent", optional: true, rest: true }],
  flags: [],
  details:
    `Nothing is started, and nobody is asked. <agent> is a name or a path; without any, all agents of the project, the user and the working folder are checked.
Exits 0 when nothing is wrong, 1 when there are faults, 2 for a name that doesn't exist.`,
  async run(invocation, context) {
    const { mcp, places, state, configFaults, providerFaults, transportFault } = await prepareCheck(
      context,
    );
    const [{ findNotes }, { checkProviders }, { checkSkills }, { checkTrust }, { TrustStore }] =
      await Promise.all([
        import("../../manifest/agents_md.ts"),
        import("../../manifest/check_providers.ts"),
        import("../../manifest/check_skills.ts"),
        import("../../manifest/check_trust.ts"),
        import("../../manifest/trust.ts"),
      ]);
    const found = await mcp(invocation.words);
    const whole = found.agents.flatMap(({ name, loaded }) =>
      loaded === undefined ? [] : [{ name, loaded }]
    );
    // Of a file with mistakes nothing is known that could be looked at.
    const models = providerFaults.length > 0 || places.providers === undefined
      ? { providers: [], faults: [] }
      : checkProviders(places.providers, whole, context.env);
    // Of files with mistakes nothing can be said that a run would come to.
    const isSound = configFaults.length + providerFaults.length === 0;
    const unready = isSound ? await readyFaults(found.agents, context) : [];
    const trust = new TrustStore(places.storage, state);
    const notes = await findNotes(places);
    const files = notes !== undefined && "projectFile" in notes ? [notes.projectFile] : [];
    const untrusted = await checkTrust(found.agents, places.servers, trust, files);
    // Of agents that are named their own skills have been looked at with them.
    const skills = places.skills === undefined || invocation.words.length > 0
      ? []
      : await checkSkills(places.skills);
    const broken = skills.filter((skill) =>
      !found.faults.some(({ file, line, message }) =>
        file === skill.file && line === skill.line && message === skill.message
      )
    );
    const isEmpty = found.agents.length + found.servers.length + models.providers.length === 0;
    return checkOutcome({
      lines: [
        ...isEmpty ? [] : manifestLines(found.agents),
        ...providerLines(models.providers),
        ...isEmpty
          ? [...mcpLines(found, transportFault).slice(0, 1), NOTHING_CONFIGURED]
          : mcpLines(found, transportFault),
      ],
      faults: onceEach([
        ...configFaults,
        ...providerFaults,
        ...models.faults,
        ...found.faults,
        ...unready,
        ...broken,
        ...untrusted,
      ]),
      faultWord: "Error",
      told: transportFaults(transportFault),
      notices: [
        ...found.notices,
        ...notes !== undefined && "notice" in notes ? [notes.notice] : [],
        ...consentNotice(untrusted),
      ],
      ...isEmpty ? { advice: EXAMPLES_ADVICE } : {},
      data: {
        transport: { ok: transportFault === undefined },
        ...mcpData(found),
        providers: models.providers.map(providerData),
      },
    }, context);
  },
};

/** A check asks nobody; a run will. */
function consentNotice(untrusted: readonly CheckFault[]): string[] {
  const count = untrusted.filter(({ severity }) => severity === "note").length;
  if (count === 0) return [];
  return [
    `${counted(count, "file")} of this project not trusted yet: a run asks, or takes --trust`,
  ];
}

function providerData({ keyVariable, keyIsSet, state: _, ...provider }: CheckedProvider): object {
  if (keyVariable === undefined) return provider;
  return { ...provider, key_variable: keyVariable, key_is_set: keyIsSet };
}
