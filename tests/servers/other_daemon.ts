/**
 * A daemon of another version, as far as a client looks: it answers `status`, and goes when it is told to, saying so.
 *
 * Usage: `deno run -A other_daemon.ts STATE_FOLDER RUNS`. Prints `up` and later `stopped`.
 */
const [state = "", runs = "0"] = Deno.args;
const record = {
  socket: `${state}/other.sock`,
  os_pid: Deno.pid,
  instance: "other-version",
  version: "9.9.9",
  protocol: 99,
};
const server = Deno.serve({
  path: record.socket,
  onListen() {
    Deno.writeTextFileSync(`${state}/daemon.json`, JSON.stringify(record));
    console.log("up");
  },
}, (request) => {
  if (!request.url.endsWith("/v1/stop")) {
    return Response.json({ ...record, runs: Number(runs), clients: 0, uptime_ms: 1 });
  }
  Deno.removeSync(`${state}/daemon.json`);
  console.log("stopped");
  // Once this answer is out.
  setTimeout(() => void server.shutdown());
  return Response.json({});
});
