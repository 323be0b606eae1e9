import assert from "node:assert/strict";
import { PERMISSION_FLAGS, selfCommand, type SelfFacts, userEnvironment } from "./self.ts";

const checkout: SelfFacts = {
  standalone: false,
  execPath: "/opt/deno",
  mainModule: "file:///home/me/my%20rnix/main.ts",
  env: { HOME: "/home/me" },
};

const bundled: SelfFacts = {
  standalone: false,
  execPath: "/home/me/.cache/rnix/runtime/0123/deno",
  mainModule: "file:///home/me/.cache/rnix/runtime/0123/main.mjs",
  env: { RNIX_EXE: "/home/me/bin/rnix" },
};

Deno.test("a compiled executable starts itself by its own path, whatever the environment says", () => {
  const facts = { ...bundled, standalone: true, execPath: "/usr/local/bin/rnix" };
  assert.deepEqual(selfCommand(facts), ["/usr/local/bin/rnix"]);
});

Deno.test("the self-extracting file starts itself, not the Deno inside it", () => {
  assert.deepEqual(selfCommand(bundled), ["/home/me/bin/rnix"]);
});

Deno.test("a checkout starts Deno with its own main.ts, its configuration and every permission by name", () => {
  assert.deepEqual(selfCommand(checkout), [
    "/opt/deno",
    "run",
    "--quiet",
    "--config",
    "/home/me/my rnix/deno.json",
    "--no-prompt",
    "--allow-read",
    "--allow-write",
    "--allow-env",
    "--allow-run",
    "--allow-net",
    "--allow-sys",
    "/home/me/my rnix/main.ts",
  ]);
});

Deno.test("a checkout that an executable started stays a checkout", () => {
  const inside = { ...checkout, env: { RNIX_EXE: "/home/me/bin/rnix" } };
  assert.deepEqual(selfCommand(inside), selfCommand(checkout));
});

Deno.test("a bundle that somebody starts by hand is started again in the same way, without a configuration", () => {
  assert.deepEqual(selfCommand({ ...bundled, env: {} }), [
    bundled.execPath,
    "run",
    "--quiet",
    ...PERMISSION_FLAGS,
    "/home/me/.cache/rnix/runtime/0123/main.mjs",
  ]);
});

Deno.test("what the executable sets for its own Deno is nobody else's environment", () => {
  const env = {
    PATH: "/bin",
    RNIX_EXE: "/home/me/bin/rnix",
    DENO_DIR: "/home/me/.cache/rnix/runtime/0123/cache",
    DENO_NO_UPDATE_CHECK: "1",
  };
  assert.deepEqual(userEnvironment(env), { PATH: "/bin" });
});

Deno.test("the user's own DENO_DIR comes back, an empty one too", () => {
  for (const kept of ["/home/me/deno", ""]) {
    const env = { RNIX_EXE: "/rnix", DENO_DIR: "/inside", RNIX_KEPT_DENO_DIR: kept };
    assert.deepEqual(userEnvironment(env), { DENO_DIR: kept });
  }
});

Deno.test("without the executable the environment is left alone, and a copy", () => {
  const env = { DENO_DIR: "/home/me/deno", DENO_NO_UPDATE_CHECK: "1" };
  const seen = userEnvironment(env);
  assert.deepEqual(seen, env);
  assert.notEqual(seen, env);
});
