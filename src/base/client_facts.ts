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

/** A file of the project that nobody has agreed to as it is. */
export interface UntrustedFile {
  /** Absolute. */
  path: string;
  /** `changed`: trusted before, but it is another text now. */
  state: "changed" | "new";
  /** What depends on it, a clause such as `what runs`. */
  decides: string;
  /** What it would have done, a line each: command lines are as they are written, variables unexpanded. */
  effects: string[];
}

/** What a person is asked to trust, all at once. */
export interface TrustQuestion {
  /** What takes the files, such as `Agent "a"`. */
  subject: string;
  files: UntrustedFile[];
}
