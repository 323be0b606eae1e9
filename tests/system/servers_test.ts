/** Servers of a run as manifests and `mcp.yaml` make them: names, trust, ones that a run can do without, how each is reached. */
import assert from "node:assert/strict";
import { SysError } from "../../src/base/errors.ts";
import { startModelEndpoint } from "../servers/model_endpoint.ts";
import { ledgerMount, manifestOf, withModelHome } from "./model_home.ts";

/** The server of `ledgerMount` as an entry of `mcp.yaml`, with more entries. */
function serversFile(folder: string, more = ""): string {
  const [, , ...lines] = ledgerMount(folder).split("\n");
  return ["servers:", ...lines.map((line) => line.slice(2)), more].join("\n");
}

Deno.test("[R7] servers of the project's mcp.yaml are mounted once they are trusted, and anew after a change", async () => {
  const endpoint = startModelEndpoint(
    (body) =>
      JSON.stringify(body).includes('"role":"tool"')
        ? { text: "done" }
        : { calls: [{ name: "pay", arguments: '{"note":"once"}' }] },
  );
  await withModelHome({}, async (home) => {
    const models = `{ provider: openai-compatible, preferred: m, base_url: "${endpoint.url}" }`;
    home.write("agent.yaml", manifestOf(models, "mcp: [world]\n"));
    home.write(".rnix/mcp.yaml", serversFile(home.folder));
    const refusal = async () => {
      const error = await home.run("./agent.yaml").catch((thrown) => thrown);
      assert.ok(error instanceof SysError, JSON.stringify(error));
      assert.deepEqual([error.code, error.exitCode], ["UNTRUSTED", 2]);
      return error.message;
    };
    assert.match(
      await refusal(),
      /\.rnix\/mcp\.yaml \(new\): what is started, and where values are sent$/,
    );
    const trusted = await home.run("./agent.yaml", { trust: true });
    assert.equal(trusted.result, "done", JSON.stringify(trusted.error));
    assert.equal(Deno.readTextFileSync(`${home.folder}/ledger`).split("\n").length, 2);
    assert.equal((await home.run("./agent.yaml")).result, "done");
    home.write(".rnix/mcp.yaml", serversFile(home.folder, "  other: { command: x }\n"));
    assert.match(await refusal(), /mcp\.yaml \(changed\)/);
    const plan = await home.system.planResume({
      ...{ run: trusted.run_id, intent: "More", unknown: [], trust: false, yes: false },
      ...{ stored: false, acceptCut: false, fork: false },
      client: { cwd: home.folder, env: home.env, interactive: false },
    });
    assert.deepEqual([plan.error?.code, plan.exit_code], ["UNTRUSTED", 2]);
    assert.match(plan.error?.message ?? "", /\.rnix\/mcp\.yaml \(changed\): what is started/);
    home.write("agent.yaml", manifestOf(models, "mcp: [wrld]\n"));
    const unknown: unknown = await home.run("./agent.yaml").catch((thrown) => thrown);
    assert.match(String(unknown), /agent\.yaml:4:7: Unknown server "wrld".*did you mean "world"\?/);
  });
  await endpoint.close();
});

Deno.test("[B03] a run goes on without servers that it doesn't require, be they unset, absent or silent", async () => {
  const endpoint = startModelEndpoint(() => ({ text: "done" }));
  await withModelHome({}, async (home) => {
    const models = `{ provider: openai-compatible, preferred: m, base_url: "${endpoint.url}" }`;
    const more = `    unset: { command: "\${GONE}", required: false }
    nowhere: { url: "https://\${GONE_TOO}/mcp", required: false }
    absent: { command: no-such-program, required: false }
    early: { command: "false", required: false }
`;
    home.write("agent.yaml", manifestOf(models, ledgerMount(home.folder) + more));
    const report = await home.run("./agent.yaml");
    assert.equal(report.result, "done", JSON.stringify(report.error));
    const failed = report.events.flatMap((event) => event.type === "mount.failed" ? [event] : []);
    assert.deepEqual(
      failed.map(({ server, required }) => [server, required]).sort(),
      [["absent", false], ["early", false], ["nowhere", false], ["unset", false]],
    );
    const messageOf = (name: string) => failed.find(({ server }) => server === name)?.error.message;
    assert.equal(
      messageOf("unset"),
      `Variable "GONE" (mcp.servers.unset.command at ./agent.yaml:11:24) is not set`,
    );
    assert.equal(
      messageOf("nowhere"),
      `Variable "GONE_TOO" (mcp.servers.nowhere.url at ./agent.yaml:12:30) is not set`,
    );
    const [request] = endpoint.requests;
    const { tools, messages } = request?.body ?? {};
    assert.ok(Array.isArray(tools) && tools.length > 0);
    const own = JSON.stringify(tools);
    for (const name of ["unset", "nowhere", "absent", "early"]) assert.ok(!own.includes(name), own);
    assert.match(JSON.stringify(messages), /server \\"absent\\" is not available/);
  });
  await endpoint.close();
});

Deno.test("a variable that a required server lacks keeps the run from being made, exit 3", async () => {
  await withModelHome({}, async (home) => {
    const models = "{ provider: scripted, script: s.yaml }";
    home.write("s.yaml", "turns: [{ text: done }]\n");
    const remote =
      '{ url: "https://${HOST_OF}/mcp", headers: { Authorization: "Bearer ${A_TOKEN}" } }';
    home.write("agent.yaml", manifestOf(models, `mcp: { servers: { remote: ${remote} } }\n`));
    const error = await home.run("./agent.yaml").catch((thrown) => thrown);
    assert.ok(error instanceof SysError, JSON.stringify(error));
    assert.deepEqual([error.code, error.exitCode], ["INVALID", 3]);
    assert.match(
      error.message,
      /"HOST_OF" \(mcp\.servers\.remote\.url at \.\/agent\.yaml:4:43\), "A_TOKEN" \(mcp\.servers\.remote\.headers\.Authorization at \.\/agent\.yaml:4:94\)/,
    );
    home.write("agent.yaml", manifestOf(models, "mcp: [far]\n"));
    home.write("config/mcp.yaml", 'servers:\n  far: { url: "https://${HOST_OF}" }\n');
    await assert.rejects(
      home.run("./agent.yaml"),
      /"HOST_OF" \(servers\.far\.url of .*mcp\.yaml at \/.*\/mcp\.yaml:2:24\) is not set/,
    );
    assert.deepEqual(await home.system.processes({ all: true }), []);
  });
});
