/** The agents and workflows shipped inside the program. Their texts are part of it: nothing is read from beside it. */
import auditAdvisorAgent from "../../agents/audit/advisor/agent.yaml" with { type: "text" };
import auditAdvisorScript from "../../agents/audit/advisor/script.yaml" with { type: "text" };
import auditAgent from "../../agents/audit/agent.yaml" with { type: "text" };
import auditJudgeAgent from "../../agents/audit/judge/agent.yaml" with { type: "text" };
import auditJudgeScript from "../../agents/audit/judge/script.yaml" with { type: "text" };
import auditLeftoversAgent from "../../agents/audit/leftovers/agent.yaml" with { type: "text" };
import auditLeftoversScript from "../../agents/audit/leftovers/script.yaml" with { type: "text" };
import auditSecretsAgent from "../../agents/audit/secrets/agent.yaml" with { type: "text" };
import auditSecretsScript from "../../agents/audit/secrets/script.yaml" with { type: "text" };
import auditShapeAgent from "../../agents/audit/shape/agent.yaml" with { type: "text" };
import auditShapeScript from "../../agents/audit/shape/script.yaml" with { type: "text" };
import demoAgent from "../../agents/demo/agent.yaml" with { type: "text" };
import demoScript from "../../agents/demo/script.yaml" with { type: "text" };
import githubAssistantAgent from "../../agents/github-assistant/agent.yaml" with { type: "text" };
import playwrightDemoAgent from "../../agents/playwright-demo/agent.yaml" with { type: "text" };
import releaseNotesAgent from "../../agents/release-notes/agent.yaml" with { type: "text" };
import releaseNotesCheckerAgent from "../../agents/release-notes/checker/agent.yaml" with {
  type: "text",
};
import releaseNotesCheckerScript from "../../agents/release-notes/checker/script.yaml" with {
  type: "text",
};
import releaseNotesHistorianAgent from "../../agents/release-notes/historian/agent.yaml" with {
  type: "text",
};
import releaseNotesHistorianScript from "../../agents/release-notes/historian/script.yaml" with {
  type: "text",
};
import releaseNotesWriterAgent from "../../agents/release-notes/writer/agent.yaml" with {
  type: "text",
};
import releaseNotesWriterScript from "../../agents/release-notes/writer/script.yaml" with {
  type: "text",
};
import surveyAgent from "../../agents/survey/agent.yaml" with { type: "text" };
import surveyListerAgent from "../../agents/survey/lister/agent.yaml" with { type: "text" };
import surveyListerScript from "../../agents/survey/lister/script.yaml" with { type: "text" };
import surveyReaderAgent from "../../agents/survey/reader/agent.yaml" with { type: "text" };
import surveyReaderScript from "../../agents/survey/reader/script.yaml" with { type: "text" };
import surveyReporterAgent from "../../agents/survey/reporter/agent.yaml" with { type: "text" };
import surveyReporterScript from "../../agents/survey/reporter/script.yaml" with { type: "text" };
import type { EmbeddedAgent } from "./load_agent.ts";

/** Can be run by name wherever one is, unless another agent of that name comes first. */
export const EMBEDDED_AGENTS: readonly EmbeddedAgent[] = [
  {
    name: "audit",
    files: {
      "advisor/agent.yaml": auditAdvisorAgent,
      "advisor/script.yaml": auditAdvisorScript,
      "agent.yaml": auditAgent,
      "judge/agent.yaml": auditJudgeAgent,
      "judge/script.yaml": auditJudgeScript,
      "leftovers/agent.yaml": auditLeftoversAgent,
      "leftovers/script.yaml": auditLeftoversScript,
      "secrets/agent.yaml": auditSecretsAgent,
      "secrets/script.yaml": auditSecretsScript,
      "shape/agent.yaml": auditShapeAgent,
      "shape/script.yaml": auditShapeScript,
    },
  },
  {
    name: "demo",
    files: {
      "agent.yaml": demoAgent,
      "script.yaml": demoScript,
    },
  },
  {
    name: "github-assistant",
    files: {
      "agent.yaml": githubAssistantAgent,
    },
  },
  {
    name: "playwright-demo",
    files: {
      "agent.yaml": playwrightDemoAgent,
    },
  },
  {
    name: "release-notes",
    files: {
      "agent.yaml": releaseNotesAgent,
      "checker/agent.yaml": releaseNotesCheckerAgent,
      "checker/script.yaml": releaseNotesCheckerScript,
      "historian/agent.yaml": releaseNotesHistorianAgent,
      "historian/script.yaml": releaseNotesHistorianScript,
      "writer/agent.yaml": releaseNotesWriterAgent,
      "writer/script.yaml": releaseNotesWriterScript,
    },
  },
  {
    name: "survey",
    files: {
      "agent.yaml": surveyAgent,
      "lister/agent.yaml": surveyListerAgent,
      "lister/script.yaml": surveyListerScript,
      "reader/agent.yaml": surveyReaderAgent,
      "reader/script.yaml": surveyReaderScript,
      "reporter/agent.yaml": surveyReporterAgent,
      "reporter/script.yaml": surveyReporterScript,
    },
  },
];

/** Those that `init --with-mcp-examples` writes, with what the line about each calls its configuration. */
export const EXAMPLE_AGENTS: readonly { name: string; config: string }[] = [
  { name: "playwright-demo", config: "MCP Playwright" },
  { name: "github-assistant", config: "MCP GitHub" },
];
