/**
 * What must hold of every workflow in a family once it has ended, read off the journals and the world without asking the program but where that is the question.
 *
 * 1. Every order and the end that the journal has were decided on what the journal says up to there.
 * 2. A call that was answered is not made again; where the node asks for another form, at most twice.
 * 3. A node begins after all that it waits for is over: in the workflow's journal, in those of the children, and in the world.
 * 4. No more than `max_parallel` are at work.
 * 5. What the journal says of a child is what the child's own says.
 */
import { blockText } from "../../src/base/content_block.ts";
import { canonicalJson, sha256Hex } from "../../src/base/json.ts";
import type { ProgramState, RunProgram } from "../../src/daemon/program_of.ts";
import type { Entry } from "../../src/journal/entry.ts";
import { callKey } from "../../src/kernel/program.ts";
import type { Workflow } from "../../src/manifest/workflow/workflow.ts";
import { programFor, scriptedAgent } from "./agents.ts";
import { type Member, pathOfKey } from "./families.ts";
import type { Stage } from "./harness.ts";

/** How often an answer in another form may be asked for. */
const FORMS_MAX = 2;

interface Facts {
  workflow: Workflow;
  member: Member;
  members: readonly Member[];
}

/** What is wrong, in words. */
export async function checkWorkflows(
  members: readonly Member[],
  { scenario, world }: Pick<Stage, "scenario" | "world">,
): Promise<string[]> {
  const done = world.effects.map(({ key }) => pathOfKey(key, members));
  const wrong: string[] = [];
  for (const member of members) {
    const { agent } = member.fold.state.ledger.identity;
    const { workflow } = scriptedAgent(scenario, agent).manifest;
    if (workflow === undefined) continue;
    const facts = { workflow, member, members };
    const program = await programFor(scenario, agent);
    const found = [
      ...checkDecided(member.fold.entries, program),
      ...checkAnswered(facts),
      ...checkOrder(facts, done),
      ...checkParallel(facts),
      ...checkChildren(facts),
    ];
    wrong.push(...found.map((text) => `workflow ${member.path || "/"}: ${text}`));
  }
  return wrong;
}

function checkDecided(entries: readonly Entry[], program: RunProgram): string[] {
  let state: ProgramState = program.initial();
  return entries.flatMap((entry) => {
    const wrong = isDecided(entry, program, state)
      ? []
      : [`record ${entry.seq} (${entry.type}) was not decided on`];
    state = program.reduce(state, entry);
    return wrong;
  });
}

function isDecided(entry: Entry, program: RunProgram, state: ProgramState): boolean {
  switch (entry.type) {
    case "call.intent":
      return program.decide(state).some((action) =>
        action.kind === "call" && action.key === callKey(entry.call, entry.attempt) &&
        action.tool === entry.tool && sha256Hex(canonicalJson(action.input)) === entry.input_sha256
      );
    case "timer":
      return program.decide(state).some((action) =>
        action.kind === "timer" && action.key === entry.key
      );
    case "run.exited":
      // A person ended it.
      if (entry.status === "killed") return true;
      return program.decide(state).some((action) =>
        action.kind === "exit" && action.status === entry.status && action.result === entry.result
      );
    default:
      return true;
  }
}

function checkAnswered({ workflow, member }: Facts): string[] {
  const answers = new Map<string, number>();
  return member.fold.entries.flatMap((entry) => {
    if (entry.type === "call.result" && entry.outcome === "ok") {
      answers.set(entry.call, (answers.get(entry.call) ?? 0) + 1);
    }
    if (entry.type !== "call.intent") return [];
    const node = workflow.nodes.find(({ name }) => name === nodeOf(entry.call));
    const forms = node?.output === undefined ? 0 : FORMS_MAX;
    return (answers.get(entry.call) ?? 0) > forms
      ? [`${callKey(entry.call, entry.attempt)} was made though its call was answered`]
      : [];
  });
}

/** In the workflow's journal, in those of its children by the clock, and in the world. */
function checkOrder({ workflow, member, members }: Facts, done: readonly string[]): string[] {
  const { path, fold } = member;
  const inJournal = fold.entries.map((entry) => "call" in entry ? nodeOf(entry.call) : undefined);
  const inWorld = done.map((key) => nodeBelow(path, key));
  const children = members.flatMap(({ path: full, fold }) => {
    const node = nodeBelow(path, full);
    return node === undefined ? [] : [{ node, entries: fold.entries }];
  });
  const timesOf = (name: string, type: Entry["type"]) =>
    children.filter(({ node }) => node === name)
      .flatMap(({ entries }) => entries.filter((entry) => entry.type === type))
      .map(({ ts }) => ts);
  return workflow.nodes.flatMap(({ name, after }) =>
    after.filter((before) =>
      !isBefore(inJournal, before, name) || !isBefore(inWorld, before, name) ||
      Math.max(...timesOf(before, "run.exited")) > Math.min(...timesOf(name, "run.started"))
    ).map((before) => `${name} began before ${before} was over`)
  );
}

/** Whether the last of one comes before the first of the other. */
function isBefore(nodes: readonly (string | undefined)[], before: string, name: string): boolean {
  const first = nodes.indexOf(name);
  return first < 0 || nodes.lastIndexOf(before) < first;
}

function checkParallel({ workflow, member }: Facts): string[] {
  const open = new Set<string>();
  return member.fold.entries.flatMap((entry) => {
    if (entry.type === "call.intent") open.add(entry.call);
    if (entry.type === "call.result" || entry.type === "call.settled") open.delete(entry.call);
    return open.size > workflow.maxParallel
      ? [`${[...open]} were at work at once at record ${entry.seq}`]
      : [];
  });
}

/** Every answer is that of the child which its intent names, and every child has its own, but for one that is taken up again: then it is that of its next end. */
function checkChildren({ member, members }: Facts): string[] {
  const { entries } = member.fold;
  const intents = entries.filter((entry) => entry.type === "call.intent");
  const made = intents.filter(({ continues }) => continues === undefined);
  const ids = new Set(made.map(({ child_run_id }) => child_run_id));
  const shared = ids.size < made.length ? ["two tries have one child"] : [];
  return [
    ...shared,
    ...intents.flatMap(({ call, attempt, child_run_id }, at) => {
      const result = entries.find((entry) =>
        entry.type === "call.result" && entry.call === call && entry.attempt === attempt
      );
      const child = members.find(({ runId }) => runId === child_run_id)?.fold;
      const before = intents.slice(0, at).filter((intent) => intent.child_run_id === child_run_id);
      const end = child?.entries.filter((entry) => entry.type === "run.exited")[before.length];
      if (result?.type !== "call.result" || end === undefined) return [];
      if (result.outcome === "unknown") return [`${callKey(call, attempt)} is unknown`];
      const text = result.content.map(blockText).join("");
      const isSame = end.status === "completed"
        ? result.outcome === "ok" && text === end.result
        : result.outcome === "error" && text.endsWith(end.result);
      return isSame ? [] : [`${callKey(call, attempt)} came to ${end.result}, and is ${text}`];
    }),
  ];
}

/** The node of a workflow's call. */
function nodeOf(call: string): string {
  return call.split(".")[1] ?? "";
}

/** The node of the workflow at `path` under which something stands. */
function nodeBelow(path: string, full: string): string | undefined {
  if (!full.startsWith(`${path}/n.`)) return undefined;
  return /^[^.#/]*/.exec(full.slice(`${path}/n.`.length))?.[0];
}
