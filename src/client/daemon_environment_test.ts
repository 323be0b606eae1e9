import assert from "node:assert/strict";
import { daemonEnvironment } from "./daemon_environment.ts";

Deno.test("a daemon gets where its folders are and what its runtime needs, and nothing else", () => {
  const needed = {
    ...{ HOME: "/home/u", PATH: "/bin", RNIX_HOME: "/r", XDG_STATE_HOME: "/s", TMPDIR: "/tmp" },
    ...{ DENO_DIR: "/d", LANG: "C.UTF-8", LC_ALL: "C", LC_CTYPE: "C" },
  };
  const others = {
    ...{ ANTHROPIC_API_KEY: "sk-1", AWS_SECRET_ACCESS_KEY: "x", DENO_AUTH_TOKENS: "t" },
    ...{ RNIX_INSTANCE: "some", SSH_AUTH_SOCK: "/a", LD_PRELOAD: "/x.so", LC_API_KEY_2: "y" },
    ...{ HTTPS_PROXY: "http://user:password@p", no_proxy: "*" },
  };
  assert.deepEqual(daemonEnvironment({ ...others, ...needed }), needed);
});
