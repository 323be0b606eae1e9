/** The stub with something small in place of Deno, so that every way a first start can go wrong is tried in milliseconds. */
import assert from "node:assert/strict";
import { type Packing, selfExtracting, systemName } from "./self_extracting.ts";
import { writeExecutable } from "../tests/doubles/executable_file.ts";

/** Stands for Deno: tells what it was started with. */
const FAKE_DENO = `#!/bin/sh
[ "$1" = --version ] && exit 0
echo "pid $$"
echo "cwd $PWD"
echo "exe $RNIX_EXE"
echo "deno_dir $DENO_DIR"
echo "kept \${RNIX_KEPT_DENO_DIR-unset}"
echo "umask $(umask)"
for word in "$@"; do echo "arg $word"; done
if [ "\${4-}" = echo ]; then cat; fi
exit 42
# ${"padding ".repeat(2_000)}
`;

const PACKING: Packing = {
  version: "1.2.3",
  denoVersion: "4.5.6",
  system: systemName(),
  deno: new TextEncoder().encode(FAKE_DENO),
  program: new Map([["main.mjs", "main"], ["chunk-A.mjs", "a"], ["chunk-B.mjs", "b"]]),
  flags: ["--flag"],
};

interface Ended {
  code: number;
  pid: number;
  stdout: string;
  stderr: string;
}

interface StartOptions {
  command?: string;
  args?: string[];
  cwd?: string;
  env?: { [name: string]: string };
  input?: string;
}

/** A folder with the executable in `bin/`, and a cache folder with a space and more in its name. */
class Stage {
  readonly folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "rnix-stub-" }));
  readonly exe = `${this.folder}/bin/rnix`;
  readonly cache = `${this.folder}/a cache, 100% "mine" #1`;
  readonly env = { PATH: `${this.folder}/bin:/usr/bin:/bin`, XDG_CACHE_HOME: this.cache };

  constructor(content = selfExtracting(PACKING)) {
    Deno.mkdirSync(`${this.folder}/bin`);
    writeExecutable(this.exe, content);
  }

  async start(options: StartOptions = {}): Promise<Ended> {
    const child = new Deno.Command(options.command ?? this.exe, {
      args: options.args ?? [],
      cwd: options.cwd ?? "/",
      clearEnv: true,
      env: { ...this.env, ...options.env },
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const writer = child.stdin.getWriter();
    // A start that fails reads nothing.
    await writer.write(new TextEncoder().encode(options.input ?? "")).catch(() => {});
    await writer.close().catch(() => {});
    const { code, stdout, stderr } = await child.output();
    const decoder = new TextDecoder();
    return {
      code,
      pid: child.pid,
      stdout: decoder.decode(stdout),
      stderr: decoder.decode(stderr),
    };
  }

  /** What is in the folder of runtimes, and in each. */
  unpacked(): { [folder: string]: string[] } {
    const folder = `${this.cache}/rnix/runtime`;
    const names = (path: string) => [...Deno.readDirSync(path)].map(({ name }) => name).toSorted();
    return Object.fromEntries(names(folder).map((name) => [name, names(`${folder}/${name}`)]));
  }

  /** The folder of the one runtime. */
  runtime(): string {
    const name = Object.keys(this.unpacked()).find((each) => !each.includes(".new-")) ?? "";
    return `${this.cache}/rnix/runtime/${name}`;
  }
}

async function onStage(work: (stage: Stage) => Promise<void>, content?: Uint8Array<ArrayBuffer>) {
  const stage = new Stage(content);
  try {
    await work(stage);
  } finally {
    Deno.removeSync(stage.folder, { recursive: true });
  }
}

function assertRan(ended: Ended): void {
  assert.equal(ended.stderr, "");
  assert.equal(ended.code, 42);
}

const ALL_FILES = ["chunk-A.mjs", "chunk-B.mjs", "deno", "main.mjs"];
/** What is in its folder once it has run. */
const USED = [...ALL_FILES, "used"];

Deno.test("arguments, folder, stdin, umask, pid and exit code are the program's own", async () => {
  await onStage(async (stage) => {
    for (const start of ["first", "later"]) {
      const args = ["echo", "two words", "", "*", "$HOME", "--flag"];
      const ended = await stage.start({ args, cwd: stage.folder, input: "a\nb" });
      assertRan(ended);
      const runtime = stage.runtime();
      assert.equal(
        ended.stdout,
        [
          `pid ${ended.pid}`,
          `cwd ${stage.folder}`,
          `exe ${stage.exe}`,
          `deno_dir ${runtime}/cache`,
          "kept unset",
          "umask 0022",
          ...["run", "--flag", `${runtime}/main.mjs`, ...args].map((word) => `arg ${word}`),
          "",
        ].join("\n") + "a\nb",
        start,
      );
    }
  });
});

Deno.test("it knows its own absolute path, however it was found", async () => {
  await onStage(async (stage) => {
    const ways: StartOptions[] = [
      { command: "rnix" },
      { command: "./rnix", cwd: `${stage.folder}/bin` },
      { command: "sh", args: ["rnix"], cwd: `${stage.folder}/bin` },
      { command: "sh", args: ["-c", "rnix"] },
      { command: "sh", args: ["-c", "cd bin && exec ./rnix"], cwd: stage.folder },
    ];
    for (const way of ways) {
      const ended = await stage.start(way);
      assertRan(ended);
      assert.match(ended.stdout, new RegExp(`^exe ${stage.exe}$`, "m"), JSON.stringify(way));
    }
    const below = await stage.start({ command: "bin/rnix", cwd: stage.folder });
    assert.match(below.stdout, new RegExp(`^exe ${stage.exe}$`, "m"));
  });
});

Deno.test("the user's DENO_DIR is kept for the program to put back", async () => {
  await onStage(async (stage) => {
    for (const kept of ["/home/me/deno", ""]) {
      const { stdout } = await stage.start({ env: { DENO_DIR: kept } });
      assert.match(stdout, new RegExp(`^kept ${kept}$`, "m"));
      assert.match(stdout, /^deno_dir .*\/cache$/m);
    }
    const { stdout } = await stage.start({ env: { RNIX_KEPT_DENO_DIR: "/stale" } });
    assert.match(stdout, /^kept unset$/m);
  });
});

Deno.test("twelve first starts at once all run, and unpack to one folder that only the user can read", async () => {
  await onStage(async (stage) => {
    for (const ended of await Promise.all(Array.from({ length: 12 }, () => stage.start()))) {
      assertRan(ended);
    }
    const unpacked = Object.entries(stage.unpacked());
    assert.equal(unpacked.length, 1, JSON.stringify(unpacked));
    assert.deepEqual(unpacked[0]?.[1], USED);
    assert.equal((Deno.statSync(stage.runtime()).mode ?? 0) & 0o777, 0o700);
  });
});

Deno.test("a folder that was unpacked in part, or lost a file or its content, is made whole", async () => {
  await onStage(async (stage) => {
    assertRan(await stage.start());
    const runtime = stage.runtime();
    for (const name of ALL_FILES) {
      Deno.removeSync(`${runtime}/${name}`);
      assertRan(await stage.start());
      Deno.truncateSync(`${runtime}/${name}`);
      assertRan(await stage.start());
      assert.deepEqual(Object.values(stage.unpacked()), [USED]);
    }
  });
});

/** Starts it and kills all of it when so many things have happened in its cache folder, or when it is through. */
async function killedAt(stage: Stage, moment: number): Promise<void> {
  using watcher = Deno.watchFs(stage.cache);
  const child = new Deno.Command(stage.exe, {
    clearEnv: true,
    env: stage.env,
    detached: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const ended = child.status.then(() => watcher.close());
  let events = 0;
  for await (const _ of watcher) {
    events += 1;
    if (events < moment) continue;
    try {
      Deno.kill(-child.pid, "SIGKILL");
    } catch {
      // It was through before its last events came.
    }
    break;
  }
  await ended;
}

Deno.test("a first start that is killed at any moment doesn't spoil the next, and the next that unpacks clears up after it", async () => {
  await onStage(async (stage) => {
    Deno.mkdirSync(`${stage.cache}/rnix/runtime`, { recursive: true });
    for (const moment of [1, 2, 3, 4, 6, 8, 11, 15, 20]) {
      await killedAt(stage, moment);
      assertRan(await stage.start());
      Deno.removeSync(stage.runtime(), { recursive: true });
    }
    // One that was killed with its last step to go left a folder, and the runtime whole: nothing was unpacked after it.
    assertRan(await stage.start());
    assert.deepEqual(Object.values(stage.unpacked()), [USED]);
  });
});

Deno.test("what another version unpacked goes once nobody has started it for a month", async () => {
  await onStage(async (stage) => {
    for (const name of ["old", "recent"]) {
      const folder = `${stage.cache}/rnix/runtime/${name}`;
      Deno.mkdirSync(folder, { recursive: true });
      Deno.writeTextFileSync(`${folder}/used`, "");
      Deno.writeTextFileSync(`${folder}/deno`, "");
    }
    Deno.utimeSync(`${stage.cache}/rnix/runtime/old/used`, 0, 0);
    assertRan(await stage.start());
    const left = Object.keys(stage.unpacked());
    assert.equal(left.length, 2);
    assert.ok(left.includes("recent"));
  });
});

Deno.test("what starts on other machines left in a shared cache goes after a day, not while they may be at work", async () => {
  await onStage(async (stage) => {
    const name = (machine: string) => `${stage.cache}/rnix/runtime/0123.new-${machine}-1`;
    for (const machine of ["old", "busy"]) Deno.mkdirSync(name(machine), { recursive: true });
    Deno.utimeSync(name("old"), 0, 0);
    assertRan(await stage.start());
    const folders = Object.keys(stage.unpacked()).filter((each) => each.startsWith("0123"));
    assert.deepEqual(folders, ["0123.new-busy-1"]);
  });
});

/** What is said of a start that fails: two lines, and nothing on stdout. */
async function complaint(stage: Stage, options: StartOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await stage.start(options);
  assert.equal(code, 1, stderr);
  assert.equal(stdout, "");
  assert.match(stderr, /^\[DRIVER\] .*\nhint: .*\n$/);
  return stderr;
}

Deno.test("a cache folder that can't be written is told with the reason and a way out", async () => {
  await onStage(async (stage) => {
    Deno.writeTextFileSync(stage.cache, "a file where the folder should be");
    const said = await complaint(stage);
    assert.ok(said.includes(`Cannot unpack rnix to "${stage.cache}/rnix/runtime/`), said);
    assert.match(said, /Not a directory/);
    assert.match(said, /hint: free about 1 MB there, or set XDG_CACHE_HOME/);
  });
});

Deno.test("a full cache folder is told, leaves nothing behind, and works once there is room", async () => {
  await onStage(async (stage) => {
    const script = `trap '' XFSZ; ulimit -f 8; exec "$0"`;
    const said = await complaint(stage, { command: "sh", args: ["-c", script, stage.exe] });
    assert.match(said, /Cannot unpack rnix to/);
    assert.deepEqual(stage.unpacked(), {});
    assertRan(await stage.start());
  });
});

Deno.test("a runtime that is there is used where nothing can be written any more", async () => {
  await onStage(async (stage) => {
    assertRan(await stage.start());
    const script = `ulimit -f 0; exec "$0"`;
    assertRan(await stage.start({ command: "sh", args: ["-c", script, stage.exe] }));
  });
});

Deno.test("an executable that was cut or altered says that it is damaged, and unpacks nothing", async () => {
  const whole = selfExtracting(PACKING);
  const altered = whole.slice();
  const last = altered.length - 20;
  altered[last] = (altered[last] ?? 0) ^ 1;
  for (const content of [whole.slice(0, -1), whole.slice(0, -300), altered]) {
    await onStage(async (stage) => {
      const said = await complaint(stage);
      assert.equal(
        said,
        `[DRIVER] "${stage.exe}" is damaged: its archive can't be unpacked\nhint: get or build it again\n`,
      );
      assert.deepEqual(stage.unpacked(), {});
    }, content);
  }
});

Deno.test("on another machine it says for which one it is", async () => {
  await onStage(async (stage) => {
    assert.match(await complaint(stage), /This rnix is for Plan9 vax, not for \w+ \w+/);
  }, selfExtracting({ ...PACKING, system: "Plan9 vax" }));
});

Deno.test("a Deno that can't be executed here is told with the system's reason", async () => {
  const deno = new TextEncoder().encode("#!/bin/sh\necho no such library >&2\nexit 1\n");
  await onStage(async (stage) => {
    const said = await complaint(stage);
    assert.match(said, /Deno can't be executed in ".*": no such library\n/);
    assert.deepEqual(stage.unpacked(), {});
  }, selfExtracting({ ...PACKING, deno }));
});

Deno.test("without a home there is no folder to guess", async () => {
  await onStage(async (stage) => {
    const env = { XDG_CACHE_HOME: "relative/does/not/count", HOME: "" };
    assert.match(await complaint(stage, { env }), /neither XDG_CACHE_HOME nor HOME/);
    const ended = await stage.start({ env: { XDG_CACHE_HOME: "", HOME: stage.folder } });
    assertRan(ended);
    assert.ok(ended.stdout.includes(`deno_dir ${stage.folder}/.cache/rnix/runtime/`));
  });
});

Deno.test("a tool that is missing is named", async () => {
  await onStage(async (stage) => {
    for (const name of ["sh", "uname", "tail", "tar"]) {
      const path = ["/usr/bin", "/bin"].map((folder) => `${folder}/${name}`)
        .find((each) => Deno.statSync(each).isFile);
      Deno.symlinkSync(path ?? "", `${stage.folder}/bin/${name}`);
    }
    const said = await complaint(stage, { env: { PATH: `${stage.folder}/bin` } });
    assert.match(said, /rnix needs "gzip" to unpack itself/);
  });
});

Deno.test("the same input gives the same bytes, and any change another folder", () => {
  const text = (content: Uint8Array) => new TextDecoder().decode(content.slice(0, 8_000));
  const hash = (content: Uint8Array) => text(content).match(/runtime\/([0-9a-f]{16})$/m)?.[1];
  const one = selfExtracting(PACKING);
  assert.deepEqual(selfExtracting(PACKING), one);
  const other = selfExtracting({ ...PACKING, program: new Map([["main.mjs", "changed"]]) });
  assert.notEqual(hash(one), undefined);
  assert.notEqual(hash(one), hash(other));
});

Deno.test("a machine's name is the one that uname gives", async () => {
  const { stdout } = await new Deno.Command("uname", { args: ["-sm"] }).output();
  assert.equal(systemName(), new TextDecoder().decode(stdout).trim());
  assert.equal(systemName({ os: "darwin", arch: "aarch64" }), "Darwin arm64");
  assert.equal(systemName({ os: "linux", arch: "aarch64" }), "Linux aarch64");
});
