/** `rnix ls`, `cat`, `stat`, `write`: the VFS from outside. What is done on a device passes the gate of the process that owns it, and is journaled there as a person's. */
import { SysError } from "../../base/errors.ts";
import { type EndSignal, EXIT_FAILED, EXIT_USAGE, exitOfSignal } from "../../base/exit.ts";
import type { Json } from "../../base/json.ts";
import type { VfsAnswer, VfsOperation, VfsRequest } from "../../base/vfs_operations.ts";
import { usageError } from "../arguments.ts";
import type { Command, Context, Flag, HeardSignal, Invocation, Outcome } from "../command.ts";
import { exactly, valueOf, wholeNumber } from "../flag_values.ts";

const PID_FLAG: Flag = {
  name: "pid",
  value: "PID",
  summary:
    "See the path as this process does: /proc/self, /mnt/mcp/SERVER, /dev, and nothing else's",
};

const PATHS =
  `Paths: /proc/PID/{status,intent,context,fd,mounts,trace,results}, also of a run that has ended, and of
a process at work /mnt/mcp/PID-SERVER/{tools,resources} and, with --pid, /dev/{fs,shell,llm}.`;

const REFUSED = "What an agent starts is refused it (exit 2).";

const LEAVING: readonly (readonly [HeardSignal, EndSignal])[] = [
  ["SIGINT", "INT"],
  ["SIGTERM", "TERM"],
  ["SIGHUP", "HUP"],
];

export const ls: Command = {
  name: "ls",
  summary: "List a folder of the VFS",
  positionals: [{ name: "path", optional: true }],
  flags: [PID_FLAG],
  details: `${PATHS}\n${REFUSED}`,
  run: (invocation, context) => use("list", invocation, context),
};

export const cat: Command = {
  name: "cat",
  summary: "Print what is at a path of the VFS",
  positionals: [{ name: "path" }],
  flags: [PID_FLAG],
  details: `${PATHS}
A resource is named by its URI as it is or percent-encoded. A tool has nothing to read before it was
written to: rnix write prints its answer. ${REFUSED}`,
  run: (invocation, context) => use("read", invocation, context),
};

export const stat: Command = {
  name: "stat",
  summary: "Tell what a path of the VFS is",
  positionals: [{ name: "path" }],
  flags: [PID_FLAG],
  details: `${PATHS}\n${REFUSED}`,
  run: (invocation, context) => use("stat", invocation, context),
};

export const write: Command = {
  name: "write",
  summary: "Call a tool of a process at work, and print its answer",
  positionals: [{ name: "path" }, { name: "json", optional: true }],
  flags: [PID_FLAG],
  details:
    `<path> is /mnt/mcp/PID-SERVER/tools/NAME or, with --pid, /dev/fs/tools/NAME or /dev/shell/tools/NAME;
<json> its arguments, {} where there are none. The call is journaled in its run as a person's: the model
doesn't see it, no budget counts it, and it is never sent twice. Exits 1 when the tool reports an error
or nobody knows what became of the call; Ctrl-C cancels it. ${REFUSED}`,
  run: (invocation, context) => use("write", invocation, context),
};

async function use(
  operation: VfsOperation,
  invocation: Invocation,
  context: Context,
): Promise<Outcome> {
  const request = requestOf(operation, invocation);
  if (await context.world.insideRun(context.env)) throw notForAgents(request);
  const left = new AbortController();
  let signal: EndSignal | undefined;
  const forget = LEAVING.map(([heard, named]) =>
    context.world.onSignal(heard, () => {
      signal = named;
      left.abort(givenUp(request));
    })
  );
  try {
    const system = await context.system();
    return outcomeOf(await system.vfs(request, left.signal));
  } catch (thrown) {
    if (signal === undefined || !(thrown instanceof SysError)) throw thrown;
    throw thrown.with({ exitCode: exitOfSignal(signal) });
  } finally {
    for (const each of forget) each();
  }
}

function requestOf(operation: VfsOperation, invocation: Invocation): VfsRequest {
  const [path = "/", text] = invocation.words;
  if (!path.startsWith("/")) {
    throw usageError(`"${path}" is no path of the VFS`, "it begins with /: rnix ls / shows them");
  }
  const pid = valueOf(invocation, "pid");
  return {
    operation,
    path,
    ...(pid === undefined ? {} : { pid: wholeNumber("--pid", pid, 1) }),
    ...(operation === "write" ? { input: inputOf(text) } : {}),
  };
}

function inputOf(text: string | undefined): Json {
  if (text === undefined || text.trim() === "") return {};
  let input: Json;
  try {
    input = JSON.parse(text);
  } catch {
    throw usageError("The arguments are not JSON", `write them as in '{"query": "rnix"}'`);
  }
  return exactly(input, text);
}

function outcomeOf(answer: VfsAnswer): Outcome {
  switch (answer.kind) {
    case "names": {
      const { path, names } = answer;
      const text = names.join("\n");
      return { exitCode: 0, data: { path, names }, text, untrusted: true };
    }
    case "node":
      return { exitCode: 0, data: answer.node, text: nodeText(answer.node), untrusted: true };
    case "content": {
      const { path, text } = answer;
      return { exitCode: 0, data: { path, text }, text, untrusted: true };
    }
    case "result": {
      const { kind: _kind, ...data } = answer;
      const shown = { data, text: answer.text, untrusted: true } as const;
      if (answer.outcome === "ok") return { exitCode: 0, ...shown };
      const message = "The tool reported an error";
      const error = { code: "DRIVER", message, syscall: "Write", device: answer.path };
      return { exitCode: EXIT_FAILED, ...shown, error };
    }
  }
}

function nodeText(node: Extract<VfsAnswer, { kind: "node" }>["node"]): string {
  const { path, kind, writable, effect, pid } = node;
  const rows: [string, string | undefined][] = [
    ["Path", path],
    ["Kind", kind],
    ["Mode", writable ? "rw" : "r"],
    ["Effect", effect],
    ["Pid", pid === undefined ? undefined : String(pid)],
  ];
  return rows.flatMap(([name, value]) => value === undefined ? [] : [`${name}:\t${value}`])
    .join("\n");
}

/** A rail, not a wall: a program that speaks to the socket by itself passes by it. */
function notForAgents({ operation, path }: VfsRequest): SysError {
  const what = operation === "write"
    ? "use a process's devices as a person does"
    : "look into processes";
  return new SysError("PERMISSION", `An agent can't ${what}`, {
    syscall: operation === "write" ? "Write" : "Open",
    device: path,
    exitCode: EXIT_USAGE,
    hint: "This command was started from within a run; an agent has its own tools alone",
  });
}

function givenUp({ operation, path }: VfsRequest): SysError {
  return new SysError("INTERRUPTED", "It was given up", {
    device: path,
    hint: operation === "write"
      ? "What became of the call is in the run's journal: rnix logs RUN"
      : undefined,
  });
}
