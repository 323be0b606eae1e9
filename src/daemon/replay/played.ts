/** One side of a run played from a recording: a model that gives the replies it gave, or tools that give the results they gave. The other side is there in earnest. */
import { SysError } from "../../base/errors.ts";
import { EXIT_USAGE } from "../../base/exit.ts";
import type { Json } from "../../base/json.ts";
import type { Mount, MountDriver, MountFacts, MountSpec } from "../../kernel/mount.ts";
import type { OwnMount } from "../../kernel/own_tools.ts";
import type { ModelPort } from "../../kernel/ports.ts";
import type { CallOptions, Device, DeviceFile, DeviceOutcome } from "../../vfs/device.ts";
import type { AgentParts } from "../run_parts.ts";
import { RecordedAnswers, type Recording } from "./recording.ts";

const NOT_RECORDED = "This call is not in the record that is played";
const TOOL_NODE = /^tools\/([^/]+)$/;

/** The parts of a run with one side from the recording. Throws INVALID (exit 2) where the recording can't be played so. */
export function playedParts(
  parts: AgentParts,
  recording: Recording,
  live: "model" | "mcp",
): AgentParts {
  if (live === "mcp") {
    const { fallback: _, ...rest } = parts;
    return { ...rest, model: playedModel(parts.model, recording) };
  }
  const answers = new RecordedAnswers(recording);
  return {
    ...parts,
    driver: playedServers(recording, answers),
    own: parts.own.map((mount) => playedOwn(mount, answers)),
  };
}

/** What keeps a run from being played so; undefined when it can be. */
export function unplayable(
  recording: Recording,
  { live, confirmed }: { live: "model" | "mcp"; confirmed: boolean },
): SysError | undefined {
  const refuse = (message: string, hint?: string) =>
    new SysError("INVALID", message, { syscall: "Replay", exitCode: EXIT_USAGE, hint });
  if (recording.calls.some(({ tool }) => tool.startsWith("agent__"))) {
    return refuse("A run that started other agents can only be replayed from its records alone");
  }
  if (recording.wasCompacted) {
    return refuse("A run whose context was compacted can only be replayed from its records alone");
  }
  const acts = recording.calls.filter(({ effect }) => effect !== "read");
  if (live === "mcp" && acts.length > 0 && !confirmed) {
    const list = acts.map(({ call, tool, effect }) => `${call} ${tool} (${effect})`).join(", ");
    return refuse(
      `It would do again what this run did: ${list}`,
      "Say --yes to do it all the same",
    );
  }
  const unknown = recording.servers.find(({ definitions }) => definitions === undefined);
  if (live === "model" && unknown !== undefined) {
    return refuse(`What the tools of server "${unknown.server}" are like is not in the record`);
  }
  return undefined;
}

function playedModel(model: AgentParts["model"], { replies }: Recording): AgentParts["model"] {
  const played: ModelPort<Parameters<AgentParts["model"]["request"]>[0]> = {
    ...model,
    request: () => Promise.reject(new Error("Turns are asked for by their number")),
  };
  let turn = 0;
  return {
    ...played,
    async request() {
      await Promise.resolve();
      turn += 1;
      const reply = replies.get(turn);
      if (reply === undefined) {
        const error = new SysError("NOT_FOUND", `The record has no reply for turn ${turn}`);
        return { ok: false, error, retryable: false };
      }
      const { message, usage, finish_reason } = reply;
      return { ok: true, message, usage, finishReason: finish_reason };
    },
  };
}

function playedServers({ servers }: Recording, answers: RecordedAnswers): MountDriver {
  return {
    async mount(spec: MountSpec): Promise<Mount> {
      await Promise.resolve();
      const recorded = servers.find(({ server }) => server === spec.server);
      if (recorded?.definitions === undefined) {
        throw new SysError("NOT_FOUND", `Server "${spec.server}" is not in the record`);
      }
      const { definitions, era, protocolVersion } = recorded;
      const facts: MountFacts = {
        era: era === "modern" ? "modern" : "legacy",
        protocolVersion,
        tools: definitions,
        setAside: {},
      };
      const names = new Map(definitions.map(({ name, modelName }) => [name, modelName]));
      return {
        ...playedDevice(names, answers),
        facts,
        health: { state: "connected", sinceMs: 0, attempts: 0, lastError: undefined },
        onChange: undefined,
        close: () => Promise.resolve(),
      };
    },
  };
}

function playedOwn(mount: OwnMount, answers: RecordedAnswers): OwnMount {
  const names = new Map(
    mount.tools.map(({ definition }) => [definition.name, definition.modelName]),
  );
  return { ...mount, device: playedDevice(names, answers) };
}

/** `names`: model-facing names by the device's own. */
function playedDevice(names: ReadonlyMap<string, string>, answers: RecordedAnswers): Device {
  const toolAt = (path: string) => {
    const node = TOOL_NODE.exec(path)?.[1];
    const tool = node === undefined ? undefined : names.get(decodeURIComponent(node));
    if (tool === undefined) throw new SysError("NOT_FOUND", `No "${path}" in the record`);
    return tool;
  };
  return {
    open(path: string): DeviceFile {
      const tool = toolAt(path);
      return {
        write: (input: Json, _options: CallOptions) =>
          Promise.resolve(played(tool, input, answers)),
        read: () => Promise.reject(new SysError("INVALID", "Nothing to read in a replay")),
        close: () => {},
      };
    },
    stat(path: string) {
      if (path === "" || path === "tools") return { kind: "folder", path };
      toolAt(path);
      return { kind: "tool", path };
    },
    list: (path: string) => Promise.resolve(path === "" ? ["tools"] : [...names.keys()]),
  };
}

function played(tool: string, input: Json, answers: RecordedAnswers): DeviceOutcome {
  const answer = answers.next(tool, input);
  if (answer === undefined) {
    const text = `[NOT_FOUND] ${NOT_RECORDED}`;
    return { kind: "answer", isError: true, content: [{ type: "text", text }] };
  }
  const { outcome, content, structured } = answer;
  return {
    kind: "answer",
    isError: outcome === "error",
    content,
    ...(structured === undefined ? {} : { structured }),
  };
}
