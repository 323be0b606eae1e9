/**
 * Containers that a server runs in: they are children of their engine, not of the program that asked for them, and outlive it. So each gets a label with the instance's id, and the engines that were used are written down for whoever sweeps.
 */
import { basename } from "./posix_path.ts";

/** Label that every container started for rnix carries; its value is the instance. */
export const CONTAINER_LABEL = "rnix.instance";

const ENGINES: readonly string[] = ["docker", "podman"];
/** What of a server's environment says where its engine is. */
const ENGINE_VARIABLES: readonly string[] = [
  "PATH",
  "HOME",
  "XDG_RUNTIME_DIR",
  "XDG_CONFIG_HOME",
  "DOCKER_HOST",
  "DOCKER_CONTEXT",
  "DOCKER_CONFIG",
  "DOCKER_CERT_PATH",
  "DOCKER_TLS_VERIFY",
  "CONTAINER_HOST",
];

/** How a container's engine is spoken to. */
export interface Engine {
  /** Absolute path. */
  program: string;
  env: { readonly [name: string]: string };
}

/** The arguments with the label put in, where `program` is a container engine that is to run something; undefined where it isn't. */
export function labelledArguments(
  program: string,
  args: readonly string[],
  instance: string,
): string[] | undefined {
  const [verb, ...rest] = args;
  if (!ENGINES.includes(basename(program)) || verb !== "run") return undefined;
  return [verb, "--label", `${CONTAINER_LABEL}=${instance}`, ...rest];
}

/** A line for the guard: the program and its variables, parted by tabs. A value that doesn't fit into a line is left out. */
export function engineLine({ program, env }: Engine): string {
  const variables = ENGINE_VARIABLES.flatMap((name) => {
    const value = env[name];
    return value === undefined || /[\t\n]/.test(value) ? [] : [`${name}=${value}`];
  });
  return [program, ...variables].join("\t");
}
