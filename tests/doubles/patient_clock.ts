/**
 * The real clock, for tests of what waits for real processes.
 *
 * Pauses are as long as ever; a limit (anything of a second or more) passes only after twenty times its length, so that a loaded machine doesn't run into it. What has to come of its own accord, and not of a limit, comes long before.
 */
import { type Clock, systemClock } from "../../src/base/clock.ts";

const LIMIT_MS_MIN = 1_000;
const PATIENCE = 20;

export const patientClock: Clock = {
  ...systemClock,
  after: (ms, fire, options) =>
    systemClock.after(ms >= LIMIT_MS_MIN ? ms * PATIENCE : ms, fire, options),
};
