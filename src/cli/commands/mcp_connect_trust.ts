/** Asks a person whether a server of the project may be started: what is printed meanwhile waits for nobody. */
import type { Context } from "../command.ts";
import { Questioner } from "../question.ts";

/** Who asks at the terminal of a command that shows nothing beside the question. */
export function questionerOf({ world }: Context): Questioner {
  const floor = { take: () => {}, giveBack: () => {} };
  return new Questioner(world.stdin, world.stderr, world.clock, floor);
}
