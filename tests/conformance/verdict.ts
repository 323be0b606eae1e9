/** What of the conformance suite's output counts: which scenarios are asked for, and when one has passed. */

/** One thing that the suite looked at. */
export interface Check {
  id: string;
  status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
}

/** How a scenario went. */
export interface Verdict {
  passed: boolean;
  summary: string;
  /** What the suite printed, where it didn't pass. */
  output?: string;
}

/** Checks that every scenario has, whatever was seen of it. */
const GENERAL = /^wire-schema-/;

/** Passed only if a check of the scenario's own succeeded, and none failed or warned. */
export function checkedScenario(exitCode: number, checks: readonly Check[]): Verdict {
  const count = (status: Check["status"]) =>
    checks.filter((check) => check.status === status).length;
  const own = checks.filter(({ id, status }) => status === "SUCCESS" && !GENERAL.test(id)).length;
  const [failed, warned] = [count("FAILURE"), count("WARNING")];
  const passed = exitCode === 0 && own > 0 && failed + warned === 0;
  const summary = `${own} of its own checks succeeded, ${failed} failed, ${warned} warned` +
    (exitCode === 0 ? "" : `, exit code ${exitCode}`);
  return { passed, summary };
}

/** A scenario and whether it must pass. */
export interface Asked {
  scenario: string;
  required: boolean;
}

/** The client's scenarios of a revision (its file of requirements), without authorization and without extensions. */
export function requiredScenarios(requirements: {
  client: string[];
  not_scored?: { scenario: string; leg: string; reason: string }[];
}): Asked[] {
  const { client, not_scored = [] } = requirements;
  const others = not_scored.filter(({ leg, reason }) => leg === "client" && reason !== "extension");
  return [
    ...client.map((scenario) => ({ scenario, required: true })),
    ...others.map(({ scenario }) => ({ scenario, required: false })),
  ].filter(({ scenario }) => !scenario.startsWith("auth/"));
}
