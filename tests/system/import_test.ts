/** From another program's configuration to servers that a manifest can name: converted, written, loaded. */
import assert from "node:assert/strict";
import { disk } from "../../src/base/disk.ts";
import { convertServers } from "../../src/manifest/import/convert.ts";
import { loadServers } from "../../src/manifest/load_servers.ts";
import { writeServers } from "../../src/manifest/write_servers.ts";

/** The sample of seed 002, tables over several lines with comments as it has them. */
const TOML = `# MCP servers
[[mcp_servers]]
name = "database"
command = "npx"
args = ["-y", "mcp-server-postgres"]
env = {
  DATABASE_URL = "\${DB_URL}",             # must be there, else the start fails
  TIMEOUT = "\${DB_TIMEOUT:-30}",          # may be left out, 30 seconds
  LOG_LEVEL = "\${LOG_LEVEL:-info}"        # may be left out
}

[[mcp_servers]]
name = "internal-api"
command = "python"
args = ["internal_api_server.py"]
`;

const JSON_TEXT = JSON.stringify({
  mcpServers: {
    "GitHub Server": { command: "npx", args: ["-y", "x"], env: { GITHUB_TOKEN: "ghp_literal" } },
    "remote": { type: "sse", url: "https://x/sse", headers: { Authorization: "Bearer ${env:T}" } },
  },
});

Deno.test("[B6] what is imported is known by name afterwards, from JSON and TOML alike", async () => {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-import-" }));
  try {
    const path = `${root}/config/mcp.yaml`;
    for (const text of [TOML, JSON_TEXT]) {
      const { servers } = await convertServers(text, { file: "theirs" });
      const options = { path, shown: "mcp.yaml", servers, overwrite: false };
      assert.equal((await writeServers(disk, options)).added.length, 2);
      const again = await writeServers(disk, options);
      assert.deepEqual([again.added.length, again.kept.length], [0, 2]);
    }
    const places = { storage: disk, cwd: root, home: root, uid: Deno.uid() ?? 0 };
    const table = await loadServers({ ...places, config: `${root}/config` });
    table.requireSound();
    const configs = table.all.map(({ config }) => config);
    assert.deepEqual(configs.map(({ name, transport }) => [name, transport]), [
      ["database", "stdio"],
      ["internal-api", "stdio"],
      ["github-server", "stdio"],
      ["remote", "sse"],
    ]);
    const [database, , github, remote] = configs;
    assert.deepEqual(database?.transport === "stdio" && database.env, {
      DATABASE_URL: "${DB_URL}",
      TIMEOUT: "${DB_TIMEOUT:-30}",
      LOG_LEVEL: "${LOG_LEVEL:-info}",
    });
    assert.deepEqual(github?.transport === "stdio" && github.env, { GITHUB_TOKEN: "ghp_literal" });
    assert.deepEqual(remote?.transport === "sse" && remote.headers, {
      Authorization: "Bearer ${T}",
    });
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
});
