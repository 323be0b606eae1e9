/** What every operation has to do with: who asks for it, what a person is asked, and how it fails. */

/** A failure as JSON. */
export interface ErrorBody {
  code: string;
  message: string;
  hint?: string;
  syscall?: string;
  device?: string;
  pid?: number;
}

/** Facts of the client's side that a run needs: its environment, its folder. */
export interface ClientFacts {
  cwd: string;
  env: { [name: string]: string };
  /** Whether a person can be asked. */
  interactive: boolean;
}

/** What a person needs to know to trust an agent that was found by name in project scope. */
export interface TrustQuestion {
  name: string;
  path: string;
  /** `changed`: trusted before, but it is another text now. */
  state: "changed" | "unknown";
  /** Command lines that would be started, variables unexpanded. */
  commands: string[];
}
