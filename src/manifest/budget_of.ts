/** `budget` of a file as the limits of a run. */
import type { z } from "zod";
import type { Budget } from "../base/budget.ts";
import type { budgetSchema } from "./manifest_schema.ts";

/** Only limits that the file gives. */
export function budgetOf(file: z.output<typeof budgetSchema>): Budget {
  const { duration, turns, tokens, tool_calls, cost_usd } = file;
  return {
    ...turns === undefined ? {} : { turns },
    ...tokens === undefined ? {} : { tokens },
    ...tool_calls === undefined ? {} : { tool_calls },
    ...duration === undefined ? {} : { duration_ms: duration },
    ...cost_usd === undefined ? {} : { cost_usd },
  };
}
