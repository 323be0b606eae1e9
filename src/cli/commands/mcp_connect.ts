/** `rnix mcp connect`: one session with an MCP server, to look into it by hand or by a script. */
import type { EndSignal } from "../../base/exit.ts";
import { exitOfSignal } from "../../base/exit.ts";
import type { ServerObserver, ServerSession } from "../../base/server_operations.ts";
import type { Command, Context, HeardSignal, Invocation, Outcome } from "../command.ts";
import { failureOf } from "../failure.ts";
import { jsonText } from "../plain_text.ts";
import { questionerOf } from "./mcp_connect_trust.ts";
import {
  SERVER_DETAILS,
  SERVER_FLAGS,
  SERVER_POSITIONALS,
  serverRequest,
  timeoutOf,
} from "./mcp_connect_flags.ts";
import { ConnectSession } from "./mcp_connect_session.ts";

const SIGNALS: readonly (readonly [HeardSignal, EndSignal])[] = [
  ["SIGINT", "INT"],
  ["SIGTERM", "TERM"],
  ["SIGHUP", "HUP"],
];

export const mcpConnect: Command = {
  name: "mcp connect",
  summary: "Look into an MCP server: list, call, read, one command a line",
  positionals: SERVER_POSITIONALS,
  flags: SERVER_FLAGS,
  details: `${SERVER_DETAILS}

Commands are read from stdin: tools, tool NAME, call TOOL [JSON], resources, templates, read URI,
prompts, prompt NAME [JSON], ping, info, help, quit. With --json every answer is one JSON object a line
{command, ok, data, error}; what the server tells by itself goes to stderr. Ctrl-C cancels a request.
Exits 1 if a command failed, 3 if the server couldn't be connected.`,
  async run(invocation, context) {
    const { stdin, stderr } = context.world;
    const interactive = !context.json && stdin.isTerminal && stderr.isTerminal;
    const timeoutMs = timeoutOf(invocation);
    const connected = new ConnectSession({ context, interactive, timeoutMs });
    const forget = SIGNALS.map(([heard, signal]) =>
      context.world.onSignal(heard, () => connected.onSignal(signal))
    );
    try {
      return await connect(invocation, context, connected);
    } finally {
      for (const each of forget) each();
    }
  },
};

async function connect(
  invocation: Invocation,
  context: Context,
  connected: ConnectSession,
): Promise<Outcome> {
  const request = serverRequest(invocation, context);
  const questioner = questionerOf(context);
  const observer: ServerObserver = {
    onNews: (news) => connected.onNews(news),
    onMissed: (events) =>
      connected.onNews({
        kind: "warning",
        message: `${events} messages of the server were missed`,
      }),
    confirmTrust: (question) => questioner.confirmTrust(question),
  };
  let session: ServerSession | undefined;
  try {
    const system = await context.system();
    session = await untilLeft(system.openServer(request, observer), connected.left);
  } catch (thrown) {
    return notConnected(thrown, context);
  }
  if (session === undefined) {
    return { exitCode: connected.exitCode ?? exitOfSignal("INT"), streamed: true };
  }
  try {
    return { exitCode: await connected.run(session), streamed: true };
  } finally {
    await Promise.race([session.close(), connected.hurried]);
  }
}

/** Undefined when the person left first; a server that is connected after all is ended. */
async function untilLeft(
  opening: Promise<ServerSession>,
  left: AbortSignal,
): Promise<ServerSession | undefined> {
  const leaving = new Promise<undefined>((resolve) =>
    left.addEventListener("abort", () => resolve(undefined), { once: true })
  );
  const session = await Promise.race([opening, leaving]);
  if (session === undefined) opening.then((late) => late.close(), () => {});
  return session;
}

/** The one line there is with `--json`, so that who reads lines needs no second form. */
function notConnected(thrown: unknown, { json, world }: Context): Outcome {
  const { error, exitCode } = failureOf(thrown);
  if (!json) return { exitCode, error };
  world.stdout.write(`${jsonText({ command: "connect", ok: false, error })}\n`);
  return { exitCode, streamed: true };
}
