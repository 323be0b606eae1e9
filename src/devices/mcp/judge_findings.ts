/**
 * What a verdict's facts mean for who wants to use the server: a fault keeps a run from using it, a warning costs it something, a note is only worth knowing.
 *
 * Pure: facts in, sentences out.
 */
import { formatDuration } from "../../base/duration.ts";
import type { Finding, ProviderVerdict, ServerVerdict } from "../../base/server_verdict.ts";
import { probeLimitMs } from "../../mcp/handshake.ts";

/** More on stderr during one mount is a flood. */
export const STDERR_BYTES_CALM = 1024 * 1024;

type Facts = Omit<ServerVerdict, "findings" | "result">;

/** The findings, faults first. */
export function findingsOf(facts: Facts, startupTimeoutMs: number): Finding[] {
  const found = [
    ...mountFindings(facts),
    ...eraFindings(facts, startupTimeoutMs),
    ...pingFindings(facts),
    ...outputFindings(facts),
    ...pagingFindings(facts),
    ...toolFindings(facts),
    ...providerFindings(facts),
  ];
  const order: readonly Finding["severity"][] = ["fault", "warning", "note"];
  return found.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

/** The worst of the findings. */
export function resultOf(findings: readonly Finding[]): ServerVerdict["result"] {
  if (findings.some(({ severity }) => severity === "fault")) return "faults";
  return findings.some(({ severity }) => severity === "warning") ? "warnings" : "ok";
}

function mountFindings({ error }: Facts): Finding[] {
  if (error === undefined) return [];
  const { message, hint } = error;
  return [{ severity: "fault", message, ...hint === undefined ? {} : { hint } }];
}

function eraFindings({ eras: { modern } }: Facts, startupTimeoutMs: number): Finding[] {
  if (modern.outcome === "exited") {
    return [warning(
      `it doesn't survive server/discover: ${modern.detail ?? "the connection ended"}`,
      "It is started a second time at its first mount; it should answer an unknown method with an error",
    )];
  }
  if (modern.outcome !== "silent") return [];
  const waited = formatDuration(probeLimitMs(startupTimeoutMs));
  return [warning(
    `it doesn't answer server/discover: every mount waits ${waited} for nothing`,
    "It should answer an unknown method with an error (-32601)",
  )];
}

function pingFindings({ ping }: Facts): Finding[] {
  switch (ping) {
    case "silent":
      return [warning(
        "it doesn't answer ping",
        "It is watched by listing its tools instead; it should answer ping with an empty result",
      )];
    case "exited":
      return [warning("it doesn't survive ping", "It should answer ping with an empty result")];
    case "unknown-method":
    case "refused":
      return [note("it answers ping with an error, which counts as life")];
    case "answered":
    case "not-tried":
      return [];
  }
}

function outputFindings({ stdout_noise: noise, stderr }: Facts): Finding[] {
  const found: Finding[] = [];
  if (noise.lines > 0) {
    const first = noise.first === undefined ? "" : `; the first is ${JSON.stringify(noise.first)}`;
    const lines = noise.lines === 1 ? "1 line" : `${noise.lines} lines`;
    found.push(warning(
      `it wrote ${lines} to stdout that are no MCP messages${first}`,
      "A server on stdio should write what isn't a message to stderr",
    ));
  }
  if (stderr.bytes > STDERR_BYTES_CALM) {
    found.push(warning(
      `it floods its stderr: ${stderr.bytes} bytes while it was mounted`,
      "Its log keeps only the end of it; make it say less",
    ));
  }
  return found;
}

function pagingFindings({ paging }: Facts): Finding[] {
  if (paging === undefined) return [];
  const { pages, tools } = paging;
  switch (paging.end) {
    case "repeated":
      return [warning(
        `its pages of tools repeat themselves: after ${pages} pages with ${tools} tools nothing new came, and it promises more`,
        "The last page should have no nextCursor",
      )];
    case "endless":
      return [warning(
        `its pages of tools don't end: ${tools} tools on ${pages} pages, and it promises more`,
        "The last page should have no nextCursor",
      )];
    case "failed":
      return [warning(`its list of tools broke off after ${pages} pages with ${tools} tools`)];
    case "complete":
      return [];
  }
}

function toolFindings({ tools }: Facts): Finding[] {
  return [
    ...tools.set_aside.map(({ tool, reason }) => warning(`tool '${tool}' is set aside: ${reason}`)),
    ...tools.renamed.map(({ tool, name }) =>
      note(`tool '${tool}' is known to models as '${name}'`)
    ),
  ];
}

/** What is the same for several providers is said once. */
function providerFindings({ providers, tools }: Facts): Finding[] {
  const refused = grouped(providers, (each) => each.refused).map(({ who, tool, reason }) =>
    warning(`${who} can't be offered tool '${tool}': ${reason}`)
  );
  const tooMany = providers.flatMap(({ provider, tools_max: max }) =>
    max === undefined ? [] : [warning(
      `${provider} takes ${max} tools in one request, and there are ${tools.usable.length}`,
      "Name those that are needed in tools.allow; the others are set aside",
    )]
  );
  const altered = grouped(providers, (each) => each.altered).map(({ who, tool, reason }) =>
    note(`${who}: tool '${tool}' can't be passed on as it is (${reason})`)
  );
  return [...refused, ...tooMany, ...altered];
}

function grouped(
  providers: readonly ProviderVerdict[],
  listOf: (provider: ProviderVerdict) => { tool: string; reason: string }[],
): { who: string; tool: string; reason: string }[] {
  const groups = new Map<string, { names: string[]; tool: string; reason: string }>();
  for (const provider of providers) {
    for (const { tool, reason } of listOf(provider)) {
      const key = JSON.stringify([tool, reason]);
      const group = groups.get(key) ?? { names: [], tool, reason };
      group.names.push(provider.provider);
      groups.set(key, group);
    }
  }
  return [...groups.values()].map(({ names, tool, reason }) => ({
    who: names.join(", "),
    tool,
    reason,
  }));
}

function warning(message: string, hint?: string): Finding {
  return { severity: "warning", message, ...hint === undefined ? {} : { hint } };
}

function note(message: string): Finding {
  return { severity: "note", message };
}
