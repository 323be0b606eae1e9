/** Asks the daemon at a socket for its status, in a process whose environment names proxies: `socket_probe.ts <socket>`. Prints the answer, and the variables as they are afterwards. */
import { DaemonSocket } from "../../src/client/daemon_socket.ts";

const socket = new DaemonSocket(Deno.args[0] ?? "");
const answer = await socket.value("status");
socket.close();
console.log(JSON.stringify([answer, Deno.env.get("NO_PROXY"), Deno.env.get("HTTP_PROXY")]));
