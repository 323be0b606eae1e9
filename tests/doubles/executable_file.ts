/**
 * Programs that a test writes and then runs.
 *
 * While a file is open for writing here, a child that another test is just starting may get a copy of it, and as long as that is there the system refuses to run the file (Text file busy). So the file to be run is written by a process that starts nothing.
 */
import assert from "node:assert/strict";

/** Writes a program to `path`, for everyone to execute. */
export function writeExecutable(path: string, content: string | Uint8Array<ArrayBuffer>): void {
  const draft = `${path}.draft`;
  Deno.writeFileSync(
    draft,
    typeof content === "string" ? new TextEncoder().encode(content) : content,
  );
  copyExecutable(draft, path);
  Deno.removeSync(draft);
}

/** Copies a program to `to`, for everyone to execute. */
export function copyExecutable(from: string, to: string): void {
  const { success, stderr } = new Deno.Command("cp", { args: [from, to], stdout: "null" })
    .outputSync();
  assert.ok(success, new TextDecoder().decode(stderr));
  Deno.chmodSync(to, 0o755);
}
