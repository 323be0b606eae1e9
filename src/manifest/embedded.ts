/** The agents shipped inside the program. Their texts are part of it: nothing is read from beside it. */
import demoManifest from "../../agents/demo/agent.yaml" with { type: "text" };
import demoScript from "../../agents/demo/script.yaml" with { type: "text" };
import githubManifest from "../../agents/github-assistant/agent.yaml" with { type: "text" };
import playwrightManifest from "../../agents/playwright-demo/agent.yaml" with { type: "text" };
import type { EmbeddedAgent } from "./load_agent.ts";

/** Can be run by name wherever one is, unless another agent of that name comes first. */
export const EMBEDDED_AGENTS: readonly EmbeddedAgent[] = [
  { name: "demo", files: { "agent.yaml": demoManifest, "script.yaml": demoScript } },
  { name: "github-assistant", files: { "agent.yaml": githubManifest } },
  { name: "playwright-demo", files: { "agent.yaml": playwrightManifest } },
];

/** Those that `init --with-mcp-examples` writes, with what the line about each calls its configuration. */
export const EXAMPLE_AGENTS: readonly { name: string; config: string }[] = [
  { name: "playwright-demo", config: "MCP Playwright" },
  { name: "github-assistant", config: "MCP GitHub" },
];
