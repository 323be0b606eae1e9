/**
 * Whether a run is observed with OpenTelemetry, and where its spans go: as the environment of the client says, by the names of the OpenTelemetry specification.
 *
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is used as it is, `OTEL_EXPORTER_OTLP_ENDPOINT` with `/v1/traces` after it; headers come from `OTEL_EXPORTER_OTLP_HEADERS` and `…_TRACES_HEADERS`, the name from `OTEL_SERVICE_NAME`; `OTEL_SDK_DISABLED=true` turns all of it off. The only file of this folder that is loaded where nobody asked for telemetry.
 */

export const SERVICE_NAME_DEFAULT = "rnix";

type Env = { readonly [name: string]: string };

/** Where spans go, and under which name. */
export interface TelemetrySettings {
  endpoint: URL;
  /** Their values are secrets. */
  headers: readonly (readonly [name: string, value: string])[];
  serviceName: string;
}

/** What the environment asks for: undefined for nothing, a sentence where it can't be done. Values are in no sentence. */
export function telemetrySettings(env: Env): TelemetrySettings | string | undefined {
  if (/^true$/i.test(env["OTEL_SDK_DISABLED"]?.trim() ?? "")) return undefined;
  const own = env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]?.trim() ?? "";
  const base = env["OTEL_EXPORTER_OTLP_ENDPOINT"]?.trim() ?? "";
  if (own === "" && base === "") return undefined;
  const endpoint = own === "" ? belowBase(base) : URL.parse(own);
  const name = own === "" ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  if (endpoint === null || !/^https?:$/.test(endpoint.protocol)) {
    return `No telemetry: ${name} is no http or https address`;
  }
  if (endpoint.username !== "" || endpoint.password !== "") {
    return `No telemetry: ${name} has a user or a password in it; OTEL_EXPORTER_OTLP_HEADERS is the place for that`;
  }
  const headers = [
    ...headersOf(env["OTEL_EXPORTER_OTLP_HEADERS"]),
    ...headersOf(env["OTEL_EXPORTER_OTLP_TRACES_HEADERS"]),
  ];
  return { endpoint, headers, serviceName: env["OTEL_SERVICE_NAME"] || SERVICE_NAME_DEFAULT };
}

/** What of the environment's telemetry settings is secret: header values, and of "Bearer KEY" the key alone too. */
export function telemetrySecrets(env: Env): string[] {
  const names = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];
  return names.flatMap((name) => headersOf(env[name])).flatMap(([, value]) => [
    value,
    value.replace(/^\w+ +/, ""),
  ]);
}

function belowBase(base: string): URL | null {
  const url = URL.parse(base);
  if (url !== null) url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/traces`;
  return url;
}

/** Pairs such as `a=1,b=2`, values percent-encoded; a pair that can't be a header is left out. */
function headersOf(list = ""): [name: string, value: string][] {
  return list.split(",").flatMap((pair): [string, string][] => {
    const [, name, written] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*(.*?)\s*$/s.exec(pair) ?? [];
    if (name === undefined || written === undefined) return [];
    const value = decoded(written);
    return /^[\t\x20-\x7e]*$/.test(value) ? [[name, value]] : [];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
