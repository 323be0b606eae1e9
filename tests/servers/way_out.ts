/** Asks for addresses by the ways of an environment, in a process with another one, and prints what came: `way_out.ts <env as JSON> <address…>`. */
import { WaysOut } from "../../src/base/ways_out.ts";

const [env = "{}", ...addresses] = Deno.args;
const way = new WaysOut().open(JSON.parse(env), (message) => console.log(message));
for (const address of addresses) console.log(await (await way.fetch(address)).text());
way.close();
