/** OpenTelemetry: loaded only where a client's environment asks for it. */
export { SpanExporter } from "./exporter.ts";
export type { Post } from "./exporter.ts";
export { RunTelemetry } from "./run_telemetry.ts";
export type { ProcessFacts } from "./run_telemetry.ts";
