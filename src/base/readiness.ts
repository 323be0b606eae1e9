/** What a run of an agent would be refused for before it starts: the wire types of the reader's `readiness`. */
import type { ClientFacts } from "./client_facts.ts";

/** Which agent, as for `rnix run`, and where it would be run. */
export interface ReadinessRequest {
  of: string;
  client: Pick<ClientFacts, "cwd" | "env">;
}

/** One thing that is in the way. */
export interface ReadinessFault {
  /** Name of the agent that lacks it: the one that was asked for, or one that it may start. */
  agent: string;
  /** Path of that agent's manifest. */
  path: string;
  part: "agents" | "servers" | "models" | "budget";
  message: string;
  hint?: string;
}
