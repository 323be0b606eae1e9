import assert from "node:assert/strict";
import { isPassedVariable, PASSED_VARIABLES } from "./passed_variables.ts";

Deno.test("the allowlist holds what programs need to run at all", () => {
  const passed = ["PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];
  passed.push("XDG_RUNTIME_DIR", "http_proxy", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE");
  for (const name of passed) assert.ok(isPassedVariable(name), name);
  for (const name of ["GITHUB_TOKEN", "PATHX", "XDG", "LC", "RNIX_HOME", "NODE_OPTIONS"]) {
    assert.ok(!isPassedVariable(name), name);
  }
  assert.equal(new Set(PASSED_VARIABLES).size, PASSED_VARIABLES.length);
});
