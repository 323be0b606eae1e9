import assert from "node:assert/strict";
import { SysError } from "./errors.ts";
import { resolvePaths, shownFrom, withTilde } from "./paths.ts";

Deno.test("RNIX_HOME holds everything and goes before all else", () => {
  const env = { RNIX_HOME: "/r", HOME: "/home/u", XDG_CONFIG_HOME: "/x", XDG_STATE_HOME: "/y" };
  assert.deepEqual(resolvePaths(env, 7), {
    config: "/r/config",
    state: "/r/state",
    runtime: "/r/run",
  });
});

Deno.test("without RNIX_HOME the XDG places are used, each by itself", () => {
  assert.deepEqual(resolvePaths({ HOME: "/home/u" }, 1000), {
    config: "/home/u/.config/rnix",
    state: "/home/u/.local/state/rnix",
    runtime: "/tmp/rnix-1000",
  });
  const env = { HOME: "/home/u", XDG_STATE_HOME: "/s", XDG_RUNTIME_DIR: "/run/user/1" };
  assert.deepEqual(resolvePaths(env, 1), {
    config: "/home/u/.config/rnix",
    state: "/s/rnix",
    runtime: "/run/user/1/rnix",
  });
  const whole = { XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "/s" };
  assert.equal(resolvePaths(whole, 1).config, "/c/rnix", "HOME isn't needed then");
});

Deno.test("relative XDG variables and an empty RNIX_HOME are ignored", () => {
  const env = { RNIX_HOME: "", HOME: "/h", XDG_CONFIG_HOME: "c", XDG_STATE_HOME: "" };
  assert.equal(resolvePaths(env, 1).config, "/h/.config/rnix");
  assert.equal(resolvePaths(env, 1).state, "/h/.local/state/rnix");
});

Deno.test("a relative RNIX_HOME or no HOME at all is told, with what to do", () => {
  const refused = (env: { [name: string]: string }, words: RegExp) =>
    assert.throws(() => resolvePaths(env, 1), (thrown) => {
      assert.ok(thrown instanceof SysError && thrown.code === "INVALID" && thrown.exitCode === 2);
      assert.match(thrown.message, words);
      assert.ok(thrown.hint);
      return true;
    });
  refused({ RNIX_HOME: "here" }, /RNIX_HOME must be an absolute path, but is "here"/);
  refused({}, /HOME is not set/);
  refused({ HOME: "home" }, /HOME is not set to an absolute path/);
});

Deno.test("paths are shortened for people only where that says the same", () => {
  assert.equal(withTilde("/home/u/.config/rnix", "/home/u"), "~/.config/rnix");
  assert.equal(withTilde("/home/u", "/home/u"), "~");
  assert.equal(withTilde("/home/user", "/home/u"), "/home/user");
  assert.equal(withTilde("/x", undefined), "/x");
  assert.equal(withTilde("/x", "/"), "/x");
  assert.equal(shownFrom("/p", "/p/agents/a/agent.yaml"), "agents/a/agent.yaml");
  assert.equal(shownFrom("/p", "/q/agent.yaml"), "/q/agent.yaml");
  assert.equal(shownFrom("/p", "/p"), "/p");
  assert.equal(shownFrom("/p", "/p/..a"), "..a");
});
