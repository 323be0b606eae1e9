/**
 * A run on small real file systems that fill up, freeze, fail to write or lose its folder: no effect leaves after that, the run says so with exit code 7, and goes on once the disk works again.
 *
 * `deno run -A tests/system/failing_disk.ts [part of a name]`. It needs Linux and the right to mount; it does so in a mount namespace of its own, and says what it couldn't try.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { removeFolder } from "../doubles/remove_folder.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const CALLS = 40;
const CALL_MS = 100;
/** A call that was on its way when the disk failed may still land. */
const SETTLE_MS = 700;
const UNTIL_MS_MAX = 60_000;
const INNER = "--inside";

const SCRIPT = `turns:
  - repeat: ${CALLS}
    calls: [{ tool: pay, input: { note: "n\${{ index }}", after_ms: ${CALL_MS} } }]
  - text: All paid.
`;

interface Answer {
  ok: boolean;
  data?: {
    state: string;
    reason?: string;
    run_id: string;
    unknown_calls?: { call: string }[];
  };
  error?: { code: string; message: string; hint?: string };
}

/** A home whose state is on a file system of its own. */
class Scene {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-disk-" }));
  readonly state = join(this.folder, "home/state");

  /** A loop device that is to be given back. */
  device: string | undefined;

  constructor() {
    Deno.mkdirSync(this.state, { recursive: true, mode: 0o700 });
    Deno.mkdirSync(join(this.folder, "agent"));
    Deno.writeTextFileSync(join(this.folder, "agent/agent.yaml"), manifest(this.ledger));
    Deno.writeTextFileSync(join(this.folder, "agent/script.yaml"), SCRIPT);
  }

  /** Below the state's file system, where that is in a file. */
  get backing(): string {
    return join(this.folder, "backing");
  }

  get ledger(): string {
    return join(this.folder, "ledger");
  }

  lines(): string[] {
    try {
      return Deno.readTextFileSync(this.ledger).split("\n").filter((line) => line !== "");
    } catch {
      return [];
    }
  }

  async rnix(...args: string[]): Promise<{ code: number; answer: Answer }> {
    const { code, stdout, stderr } = await new Deno.Command(join(ROOT, "scripts/rnix"), {
      args: ["--json", ...args],
      cwd: this.folder,
      env: { RNIX_HOME: join(this.folder, "home"), NO_COLOR: "1" },
      stdin: "null",
    }).output();
    const text = new TextDecoder().decode(stdout);
    const answer = text === "" ? { ok: false } : JSON.parse(text);
    if (code !== 0) {
      console.log("   ", JSON.stringify(answer.error ?? new TextDecoder().decode(stderr)));
    }
    return { code, answer };
  }

  async paid(count: number): Promise<void> {
    const endMs = performance.now() + UNTIL_MS_MAX;
    while (this.lines().length < count) {
      assert.ok(performance.now() < endMs, `only ${this.lines().length} calls were made`);
      await pause(20);
    }
  }

  /** Takes the run to its end, and sees that all was done once. */
  async goOn(): Promise<void> {
    let { code, answer } = await this.rnix("resume", "1");
    if (code === 5) {
      const rules = (answer.data?.unknown_calls ?? []).map(({ call }) =>
        `--unknown=${call}:${this.#wasDone(call) ? "done" : "retry"}`
      );
      ({ code, answer } = await this.rnix("resume", "1", ...rules));
    }
    assert.equal(code, 0, JSON.stringify(answer));
    const keys = this.lines().map((line) => line.split(" ").at(-1));
    assert.equal(new Set(keys).size, keys.length, "a call was done twice");
    assert.equal(keys.length, CALLS);
  }

  /** What a person sees who looks. */
  #wasDone(call: string): boolean {
    return this.lines().some((line) => line.endsWith(`/${call}`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rnix("daemon", "stop");
    await sh(
      `umount -l "${this.state}" 2>/dev/null; umount -l "${this.backing}" 2>/dev/null; true`,
    );
    if (this.device !== undefined) await sh(`losetup -d ${this.device} 2>/dev/null; true`);
    await sh(`umount -l "${this.backing}" 2>/dev/null; true`);
    await removeFolder(this.folder);
  }
}

type Trial = (scene: Scene) => Promise<void>;

/** Fails the disk in the middle of a run: what was paid when the run ended is all, and where all writing fails at once, what was paid then and one call that was on its way. */
async function failing(
  scene: Scene,
  fail: () => Promise<unknown>,
  failsAtOnce = true,
): Promise<Answer> {
  const run = scene.rnix("run", join(scene.folder, "agent"), "Pay");
  await scene.paid(5);
  await fail();
  const then = scene.lines().length;
  const { code, answer } = await run;
  const atMost = failsAtOnce ? then + 1 : scene.lines().length;
  assert.equal(code, 7, JSON.stringify(answer));
  assert.equal(answer.data?.reason, "journal");
  await pause(SETTLE_MS);
  assert.ok(scene.lines().length <= atMost, `${scene.lines().length} calls, ${atMost} at most`);
  return answer;
}

const TRIALS: { [name: string]: Trial } = {
  "a full disk": async (scene) => {
    await sh(`mount -t tmpfs -o size=600k,mode=700 tmpfs "${scene.state}"`);
    const filler = join(scene.state, "filler");
    const answer = await failing(
      scene,
      () => sh(`dd if=/dev/zero of="${filler}" bs=1k count=9999 2>/dev/null; true`),
    );
    assert.equal(answer.error?.code, "RESOURCE_EXHAUSTED");
    const again = await scene.rnix("resume", "--all");
    assert.equal(again.code, 7, "resumed on a full disk");
    const other = await scene.rnix("run", join(scene.folder, "agent"), "Pay");
    assert.equal(other.code, 7, "started on a full disk");
    Deno.removeSync(filler);
    await scene.goOn();
  },
  "a disk that can't be written": async (scene) => {
    const device = await loopDevice(scene);
    const filler = `${scene.backing}/filler`;
    const fill = () => sh(`dd if=/dev/zero of="${filler}" bs=4k 2>/dev/null; true`);
    // What still fits into blocks that are there is durable all the same.
    await failing(scene, fill, false);
    await scene.rnix("daemon", "stop");
    await sh(`rm "${filler}"; umount "${scene.state}" && (fsck -p ${device}; true)`);
    await sh(`mount ${device} "${scene.state}"`);
    await scene.goOn();
  },
  "a disk that stands still for a while": async (scene) => {
    await loopDevice(scene);
    const run = scene.rnix("run", join(scene.folder, "agent"), "Pay");
    await scene.paid(5);
    await sh(`fsfreeze -f "${scene.state}"`);
    await pause(SETTLE_MS);
    const frozen = scene.lines().length;
    await pause(2_000);
    assert.equal(scene.lines().length, frozen, "calls left while the disk stood still");
    await sh(`fsfreeze -u "${scene.state}"`);
    assert.equal((await run).code, 0);
    assert.equal(new Set(scene.lines()).size, CALLS);
  },
  "a folder that is removed": async (scene) => {
    await failing(scene, () => sh(`rm -rf "${scene.state}"/runs/*`));
    const { code } = await scene.rnix("resume", "1");
    assert.equal(code, 2);
  },
};

/** An ext4 file system at the scene's state, in a file that is on a small one itself: where that is full, writing back fails. Gives its device. */
async function loopDevice(scene: Scene): Promise<string> {
  const image = join(scene.backing, "image");
  await sh(`mkdir "${scene.backing}" && mount -t tmpfs -o size=4m tmpfs "${scene.backing}"`);
  await sh(`truncate -s 16M "${image}" && mkfs.ext4 -q -O ^has_journal "${image}"`);
  const device = await sh(`losetup -f --show "${image}"`);
  scene.device = device;
  await sh(`mount ${device} "${scene.state}" && chmod 700 "${scene.state}"`);
  return device;
}

async function sh(script: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("/bin/sh", { args: ["-c", script] })
    .output();
  if (!success) throw new NotHere(`${script}: ${new TextDecoder().decode(stderr).trim()}`);
  return new TextDecoder().decode(stdout).trim();
}

/** The machine doesn't allow it. */
class NotHere extends Error {}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function manifest(ledger: string): string {
  const server = join(ROOT, "tests/servers/ledger_server.ts");
  const run = ["run", "--quiet", "-A", "--no-config", "--no-lock", "--no-check", server, ledger];
  return `name: payer
instructions: Pay.
models: { provider: scripted, script: script.yaml }
mcp:
  servers:
    ledger:
      command: ${Deno.execPath()}
      args: ${JSON.stringify(run)}
      startup_timeout: 1m
      tools: { allow: [pay] }
budget: { turns: 100 }
`;
}

/** Names of the trials that were made. Throws what one of them found. */
async function tryAll(part: string): Promise<string[]> {
  const made: string[] = [];
  for (const [name, trial] of Object.entries(TRIALS)) {
    if (!name.includes(part)) continue;
    await using scene = new Scene();
    try {
      await trial(scene);
    } catch (thrown) {
      if (!(thrown instanceof NotHere)) throw thrown;
      console.log(`${name}: not here (${thrown.message})`);
      continue;
    }
    made.push(name);
    console.log(`${name}: ok`);
  }
  return made;
}

/** The same in a mount namespace of its own. Gives the exit code and what was said; undefined where there can be none. */
export async function insideNamespace(
  part: string,
): Promise<{ code: number; said: string } | undefined> {
  const can = await new Deno.Command("unshare", { args: ["-m", "true"] }).output()
    .catch(() => ({ success: false }));
  if (!can.success) return undefined;
  const program = new URL(import.meta.url).pathname;
  const { code, stdout, stderr } = await new Deno.Command("unshare", {
    args: ["-m", Deno.execPath(), "run", "-A", "--no-check", program, INNER, part],
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, said: decoder.decode(stdout) + decoder.decode(stderr) };
}

if (import.meta.main) {
  const [first = "", part = ""] = Deno.args;
  if (first === INNER) await tryAll(part);
  else {
    const report = await insideNamespace(first);
    console.log(report?.said ?? "This machine lets nobody mount: nothing was tried");
    if (report !== undefined && report.code !== 0) Deno.exit(1);
  }
}
