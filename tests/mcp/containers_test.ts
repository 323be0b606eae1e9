/** Containers that servers run in are gone after rnix, however it went; those of others stay. */
import assert from "node:assert/strict";
import { disk } from "../../src/base/disk.ts";
import { TerminalStage } from "../system/terminal_stage.ts";
import { copyExecutable } from "../doubles/executable_file.ts";

const FAKE = new URL("../servers/fake_docker.sh", import.meta.url).pathname;
const LEDGER_SERVER = new URL("../servers/ledger_server.ts", import.meta.url).pathname;
const GONE_MS_MAX = 60_000;

interface Scene {
  stage: TerminalStage;
  /** Label and OS pid of each container. */
  containers(): { label: string; pid: number }[];
  daemon: { os_pid: number; instance: string };
}

/** A run whose server is in a container, beside a container of somebody else. */
async function begin(stage: TerminalStage): Promise<Scene> {
  const bin = `${stage.folder}/bin`;
  const config = `${stage.folder}/docker`;
  Deno.mkdirSync(bin);
  Deno.mkdirSync(`${config}/containers`, { recursive: true });
  copyExecutable(FAKE, `${bin}/docker`);
  const stranger = new Deno.Command("setsid", { args: ["sleep", "600"] }).spawn();
  stranger.unref();
  Deno.writeTextFileSync(`${config}/containers/stranger`, `${stranger.pid} other=1\n`);
  const deno = [Deno.execPath(), "run", "-A", "--no-config", "--no-lock", "--no-check"];
  const args = JSON.stringify(["run", "-i", "image", ...deno, LEDGER_SERVER, stage.ledger]);
  const env = JSON.stringify({ DOCKER_CONFIG: config });
  stage.agent("boxed", "turns:\n  - delay: 60s\n    text: Done.\n", [
    `box: { command: docker, args: ${args}, env: ${env}, startup_timeout: 1m }`,
  ]);
  const path = `${bin}:${Deno.env.get("PATH")}`;
  const started = await stage.open(["run", "-d", "boxed"], { env: { PATH: path } }).ended;
  assert.equal(started.code, 0, started.stderr);
  const containers = () =>
    [...Deno.readDirSync(`${config}/containers`)].flatMap(({ name }) => {
      try {
        const text = Deno.readTextFileSync(`${config}/containers/${name}`);
        const [pid, label = ""] = text.trim().split(" ");
        return [{ pid: Number(pid), label }];
      } catch {
        return []; // removed at this moment
      }
    });
  const daemon = await stage.data<Scene["daemon"]>("daemon", "status");
  assert.deepEqual(containers().map(({ label }) => label).sort(), [
    "other=1",
    `rnix.instance=${daemon.instance}`,
  ]);
  return { stage, containers, daemon };
}

/** Waits until only the stranger's is left, alive; ends it. */
async function onlyStrangerIsLeft({ containers }: Scene): Promise<void> {
  const endMs = performance.now() + GONE_MS_MAX;
  while (containers().length > 1) {
    assert.ok(performance.now() < endMs, JSON.stringify(containers()));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const [{ label, pid } = { label: "", pid: 0 }] = containers();
  assert.equal(label, "other=1");
  Deno.kill(pid, "SIGKILL"); // throws where it is gone
}

Deno.test("[C01] [C05] after kill -9 of the daemon its guard removes containers by their label", async () => {
  await using stage = new TerminalStage();
  const scene = await begin(stage);
  Deno.kill(scene.daemon.os_pid, "SIGKILL");
  await onlyStrangerIsLeft(scene);
});

Deno.test("[C01] [C05] after kill -9 of daemon and guard the next start removes them", async () => {
  await using stage = new TerminalStage();
  const scene = await begin(stage);
  const { instance, os_pid } = scene.daemon;
  await new Deno.Command("pkill", { args: ["-KILL", "-f", `rnix-guard ${instance}`] }).output();
  Deno.kill(os_pid, "SIGKILL");
  assert.equal((await stage.rnix("daemon", "start")).code, 0);
  await onlyStrangerIsLeft(scene);
  const engines = `${stage.home}/state/containers-${instance}`;
  await stage.until(async () => await disk.stat(engines) === undefined ? true : undefined);
});

Deno.test("a daemon that stops leaves no container", async () => {
  await using stage = new TerminalStage();
  const scene = await begin(stage);
  assert.equal((await stage.rnix("daemon", "stop")).code, 0);
  await onlyStrangerIsLeft(scene);
});
