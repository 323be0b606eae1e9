/** The mark by which rnix knows what was started for it. */

/** Environment variable that every process started for rnix carries. */
export const INSTANCE_VARIABLE = "RNIX_INSTANCE";
