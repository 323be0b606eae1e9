/**
 * From `models` of a manifest to the ports that the kernel asks: the preferred model and the one that stands in for it, with key, headers and price.
 *
 * What is missing of the client's environment is found by `readyModels`, before a run exists.
 */
import type { AgentPrompt } from "../agent/agent_program.ts";
import type { Budget, Price } from "../base/budget.ts";
import type { Clock } from "../base/clock.ts";
import { SysError } from "../base/errors.ts";
import { EXIT_USAGE } from "../base/exit.ts";
import { shownFrom } from "../base/paths.ts";
import { join, resolve } from "../base/posix_path.ts";
import { badProxyVariable } from "../base/proxy_choice.ts";
import { modelPort } from "../devices/llm/model_port.ts";
import type { ModelPort } from "../kernel/ports.ts";
import type { Model } from "../llm/model.ts";
import { createModel } from "../llm/registry.ts";
import type { LoadedAgent, ModelPlace } from "../manifest/agent_manifest.ts";
import { NO_MODEL } from "../manifest/workflow/workflow_manifest.ts";
import { type ResolvedModel, resolveModel } from "../manifest/resolve_model.ts";

/** Models at work. */
export interface ModelParts {
  model: ModelPort<AgentPrompt>;
  fallback?: ModelPort<AgentPrompt>;
  close(): void;
}

/** What models work with. */
export interface ModelSurroundings {
  clock: Clock;
  redact: (text: string) => string;
  /** The way to their providers. */
  fetch: typeof fetch;
}

/** Models with their surroundings filled in. */
export interface ReadyModels {
  /** Name of the preferred one. */
  name: string;
  secrets: string[];
  sinkOnly: string[];
  /** Providers and models without a known price. */
  unpriced: string[];
  /** Throws for settings that a provider can't work with, such as a bad script. */
  make(surroundings: ModelSurroundings): ModelParts;
}

interface Place {
  place: ModelPlace;
  resolved: ResolvedModel;
}

/** What models are made ready with. */
export interface ModelFacts {
  clientEnv: { [name: string]: string };
  /** The run's working folder, for messages. */
  cwd: string;
  /** Goes before the manifest's. */
  model: string | undefined;
}

/** Throws a SysError (exit 2) when a variable is missing. */
export function readyModels(
  agent: LoadedAgent,
  { clientEnv, cwd, model: preferred }: ModelFacts,
): ReadyModels {
  const { models, workflow } = agent.manifest;
  if (workflow !== undefined) return noModels(preferred);
  const { fallback } = models;
  const first: Place = {
    place: models,
    resolved: resolveModel(
      preferred === undefined ? models : { ...models, preferred },
      clientEnv,
      agent.placeOf,
    ),
  };
  const second: Place | undefined = fallback === undefined ? undefined : {
    place: fallback,
    resolved: resolveModel({ ...fallback, preferred: fallback.model }, clientEnv, agent.placeOf),
  };
  const bad = models.provider === "scripted" ? undefined : badProxyVariable(clientEnv);
  if (bad !== undefined) {
    throw new SysError("INVALID", `The proxy in ${bad} is no http, https or socks5 address`, {
      hint: `Correct it, or take it away: unset ${bad}`,
      exitCode: EXIT_USAGE,
    });
  }
  const all = second === undefined ? [first] : [first, second];
  return {
    name: first.resolved.model,
    secrets: all.flatMap(({ resolved }) => resolved.secrets),
    sinkOnly: all.flatMap(({ resolved }) => resolved.sinkOnly),
    unpriced: all.filter(({ place }) => place.price === undefined)
      .map(({ resolved }) => `${resolved.provider} (${resolved.model})`),
    make: (surroundings) => makeParts({ agent, cwd, ...surroundings }, { first, second }),
  };
}

/** In place of a model, for a workflow. Throws INVALID (exit 2) where a model is named all the same. */
function noModels(preferred: string | undefined): ReadyModels {
  if (preferred !== undefined && preferred !== NO_MODEL.preferred) {
    throw new SysError("INVALID", `A workflow asks no model, so "${preferred}" has no use`, {
      hint: "Say it in the manifests of its agents, or as `model` of its nodes",
      exitCode: EXIT_USAGE,
    });
  }
  const { provider, preferred: model } = NO_MODEL;
  return {
    name: model,
    secrets: [],
    sinkOnly: [],
    unpriced: [],
    make: () => ({
      model: {
        provider,
        model,
        requestMsMax: 0,
        refuses: () => undefined,
        request: () => Promise.reject(new Error("A workflow asks no model")),
      },
      close: () => {},
    }),
  };
}

interface Making extends ModelSurroundings {
  agent: LoadedAgent;
  cwd: string;
}

function makeParts(
  making: Making,
  { first, second }: { first: Place; second: Place | undefined },
): ModelParts {
  const requestMsMax = making.agent.manifest.models.maxTimeoutMs;
  const made: Model[] = [];
  const port = (place: Place) => {
    const model = makeModel(making, place);
    made.push(model);
    const price: Price | undefined = place.place.price;
    return modelPort<AgentPrompt>(model, place.resolved.model, { requestMsMax, price });
  };
  const model = port(first);
  return {
    model,
    ...(second === undefined ? {} : { fallback: port(second) }),
    close: () => made.forEach((each) => each.close()),
  };
}

function makeModel(
  { agent, cwd, clock, redact, fetch }: Making,
  { place, resolved }: Place,
): Model {
  const { script, timeoutMs } = agent.manifest.models;
  return createModel({
    provider: resolved.kind,
    name: resolved.provider,
    baseUrl: resolved.baseUrl,
    apiKey: resolved.apiKey,
    apiKeyEnv: place.apiKeyEnv,
    headers: resolved.headers,
    contextWindow: place.contextWindow,
    timeoutMs,
    redact,
    fetch,
    script: agent.scriptText === undefined
      ? undefined
      : { name: shownScript(agent, script ?? "script", cwd), text: agent.scriptText },
    clock,
  });
}

/** The script as the user named its manifest, else as they would from where they stand. */
function shownScript(
  { folder, scriptFile }: LoadedAgent,
  script: string,
  cwd: string,
): string {
  if (scriptFile !== undefined) return scriptFile;
  return folder.startsWith("/") ? shownFrom(cwd, resolve(folder, script)) : join(folder, script);
}

/** Throws INVALID (exit 2) where a run is limited by a cost that can't be known. */
export function requirePrices({ unpriced }: Pick<ReadyModels, "unpriced">, budget: Budget): void {
  if (budget.cost_usd === undefined || unpriced.length === 0) return;
  throw new SysError(
    "INVALID",
    `The budget "cost_usd" needs a price, and none is known for ${unpriced.join(", ")}`,
    {
      hint:
        "add price: { input: …, output: … } (dollars for a million tokens) to the provider in providers.yaml, or take cost_usd out",
      exitCode: EXIT_USAGE,
    },
  );
}
