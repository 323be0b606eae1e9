/**
 * Builds rnix as one executable, `dist/rnix`, and says which of its two forms came out.
 *
 * `deno compile` makes it, where its base binary can be had. Only if that is what is missing, the same program becomes a self-extracting file:
 * a sh script with an archive of this Deno and of the bundle behind it. Options: `--target TRIPLE` (of `deno compile`), `--form compiled|self-extracting`, `--output FILE`.
 */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { PERMISSION_FLAGS } from "../src/base/self.ts";
import { VERSION } from "../src/base/version.ts";
import { bundle } from "./bundle.ts";
import { selfExtracting, systemName } from "./self_extracting.ts";

const ROOT = new URL("../", import.meta.url).pathname;
/** Longer than the download of a base binary takes on a slow line. */
const COMPILE_MS_MAX = 600_000;
const HOST = Deno.build.target;

const FORMS = ["compiled", "self-extracting"] as const;
type Form = (typeof FORMS)[number];

interface BuildOptions {
  target: string;
  /** The only form wanted; else compiled if that can be had. */
  form: Form | undefined;
  output: string;
}

/** Flags of `deno run` and `deno compile` for the program in either form. */
function runtimeFlags(): string[] {
  const config: { unstable: string[] } = JSON.parse(Deno.readTextFileSync(`${ROOT}deno.json`));
  return [
    ...["--quiet", "--no-config", "--no-lock", "--no-npm", "--no-remote", "--cached-only"],
    ...config.unstable.map((name) => `--unstable-${name}`),
    ...PERMISSION_FLAGS,
  ];
}

async function build(options: BuildOptions): Promise<Form> {
  const program = await bundle(ROOT);
  if (options.form !== "self-extracting" && await compiled(program, options)) return "compiled";
  if (options.target !== HOST) {
    throw new Error(
      `Deno's base binary for ${options.target} can't be had, and a self-extracting file can be ` +
        `built for ${HOST} only, since it holds this Deno`,
    );
  }
  place(
    options.output,
    selfExtracting({
      version: VERSION,
      denoVersion: Deno.version.deno,
      system: systemName(),
      deno: Deno.readFileSync(Deno.execPath()),
      program,
      flags: runtimeFlags(),
    }),
  );
  return "self-extracting";
}

/** Whether it could be compiled; false only where the base binary can't be had and the form is open. */
async function compiled(
  program: ReadonlyMap<string, string>,
  options: BuildOptions,
): Promise<boolean> {
  const folder = Deno.makeTempDirSync({ prefix: "rnix-build-" });
  try {
    for (const [name, text] of program) Deno.writeTextFileSync(`${folder}/${name}`, text);
    const [entry = "", ...chunks] = program.keys();
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["compile", ...runtimeFlags(), "--target", options.target, "--app-name", "rnix"],
        ...chunks.flatMap((name) => ["--include", name]),
        ...["--output", `${folder}/rnix`, entry],
      ],
      cwd: folder,
      env: { NO_COLOR: "1" },
      stdout: "null",
      signal: AbortSignal.timeout(COMPILE_MS_MAX),
    }).output();
    if (success) {
      place(options.output, Deno.readFileSync(`${folder}/rnix`));
      return true;
    }
    const [said = ""] = new TextDecoder().decode(stderr).split("\nStack backtrace:");
    if (options.form === undefined && said.includes("Setting up base binary")) return false;
    throw new Error(`deno compile failed: ${said.trim()}`);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Whole or not at all, also over an executable that is running. */
function place(path: string, content: Uint8Array): void {
  Deno.mkdirSync(path.replace(/[^/]*$/, "") || ".", { recursive: true });
  const made = `${path}.new-${Deno.pid}`;
  Deno.writeFileSync(made, content, { mode: 0o755 });
  Deno.renameSync(made, path);
}

function options(args: string[]): BuildOptions {
  const { values } = parseArgs({
    args,
    options: {
      target: { type: "string", default: HOST },
      form: { type: "string" },
      output: { type: "string", default: `${ROOT}dist/rnix` },
    },
  });
  const form = FORMS.find((each) => each === values.form);
  if (values.form !== undefined && form === undefined) {
    throw new Error(`--form must be ${FORMS.join(" or ")}, not "${values.form}"`);
  }
  return { target: values.target, form, output: values.output };
}

if (import.meta.main) {
  try {
    const wanted = options(Deno.args);
    const form = await build(wanted);
    const content = Deno.readFileSync(wanted.output);
    console.log(
      `${wanted.output}: ${form}, rnix ${VERSION}, Deno ${Deno.version.deno}, ${wanted.target}, ` +
        `${(content.length / 1e6).toFixed(1)} MB, sha256 ${sha256(content)}`,
    );
  } catch (thrown) {
    console.error(`Cannot build rnix: ${thrown instanceof Error ? thrown.message : thrown}`);
    Deno.exit(1);
  }
}
