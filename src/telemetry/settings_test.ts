import assert from "node:assert/strict";
import { telemetrySecrets, telemetrySettings } from "./settings.ts";

const BASE = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const HEADERS = "OTEL_EXPORTER_OTLP_HEADERS";

function settingsOf(env: { [name: string]: string }) {
  const settings = telemetrySettings(env);
  assert.ok(typeof settings === "object", String(settings));
  return settings;
}

Deno.test("an environment that names no collector, or disables it, asks for nothing", () => {
  assert.equal(telemetrySettings({ OTEL_SERVICE_NAME: "x", [HEADERS]: "a=b" }), undefined);
  assert.equal(telemetrySettings({ [BASE]: " ", [TRACES]: "" }), undefined);
  for (const OTEL_SDK_DISABLED of ["true", " TRUE "]) {
    assert.equal(telemetrySettings({ [BASE]: "http://x", OTEL_SDK_DISABLED }), undefined);
  }
  assert.ok(telemetrySettings({ [BASE]: "http://x", OTEL_SDK_DISABLED: "1" }) !== undefined);
});

Deno.test("the address of all signals gets a path, that of traces is taken as it is and goes first", () => {
  for (const base of ["http://h:4318", "http://h:4318/"]) {
    assert.equal(settingsOf({ [BASE]: base }).endpoint.href, "http://h:4318/v1/traces");
  }
  assert.equal(
    settingsOf({ [BASE]: "https://h/a/?k=1" }).endpoint.href,
    "https://h/a/v1/traces?k=1",
  );
  assert.equal(
    settingsOf({ [BASE]: "http://h", [TRACES]: "http://t/x" }).endpoint.href,
    "http://t/x",
  );
});

Deno.test("headers are pairs with encoded values; what can't be one is left out, and values are secret", () => {
  const list = "authorization=Bearer%20KEY-1 , x-a=b=c,no pair,bad name=1,x-b=%0a,x-c=100%";
  assert.deepEqual(settingsOf({ [BASE]: "http://h", [HEADERS]: list }).headers, [
    ["authorization", "Bearer KEY-1"],
    ["x-a", "b=c"],
    ["x-c", "100%"],
  ]);
  assert.deepEqual(telemetrySecrets({ [HEADERS]: "authorization=Bearer%20KEY-1" }), [
    "Bearer KEY-1",
    "KEY-1",
  ]);
  assert.deepEqual(telemetrySecrets({}), []);
});

Deno.test("an address that can't be used is told without its value", () => {
  for (const bad of ["canary", "ftp://canary", "http://canary:canary@h"]) {
    for (const name of [BASE, TRACES]) {
      const told = telemetrySettings({ [name]: bad });
      assert.ok(
        typeof told === "string" && told.includes(name) && !told.includes("canary"),
        String(told),
      );
    }
  }
});
