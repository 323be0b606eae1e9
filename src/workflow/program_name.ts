/** Name of the workflow's program in `run.started`: in a file of its own, so that who only tells of runs loads nothing else of it. */
export const WORKFLOW_PROGRAM = "workflow";
