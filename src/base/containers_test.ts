import assert from "node:assert/strict";
import { engineLine, labelledArguments } from "./containers.ts";

Deno.test("a container gets its label first of all, whichever engine runs it", () => {
  const args = ["run", "-i", "--rm", "mcp/server"];
  for (const program of ["docker", "/usr/bin/podman"]) {
    assert.deepEqual(labelledArguments(program, args, "abc"), [
      ...["run", "--label", "rnix.instance=abc", "-i", "--rm", "mcp/server"],
    ]);
  }
  assert.deepEqual(args.length, 4);
});

Deno.test("what runs no container is left as it is", () => {
  assert.equal(labelledArguments("docker", ["exec", "-i", "x", "server"], "abc"), undefined);
  assert.equal(labelledArguments("docker", [], "abc"), undefined);
  assert.equal(labelledArguments("npx", ["run"], "abc"), undefined);
  assert.equal(labelledArguments("/opt/docker/server", ["run"], "abc"), undefined);
});

Deno.test("an engine is written down with what says where it is, and no secret", () => {
  const env = { PATH: "/bin", DOCKER_HOST: "unix:///x", TOKEN: "secret", HOME: "/a\tb" };
  assert.equal(
    engineLine({ program: "/bin/docker", env }),
    "/bin/docker\tPATH=/bin\tDOCKER_HOST=unix:///x",
  );
});
